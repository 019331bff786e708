"""The tests of tests/gpu, one process for each file, and the engine under compute-sanitizer if that is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

from ..machine import ROOT
from ..record import Deadline, NotHere, PartRecord, Step

_LAST = "test_race_on_device.py"  # as long as all the others together
# Of a file on an H100, with what it imports.
_NEEDS_S = {
    "test_cache_and_graphs.py": 20.0,
    "test_failures.py": 25.0,
    "test_feeding_on_device.py": 14.0,
    "test_hidden_streams.py": 35.0,
    "test_precisions_on_device.py": 28.0,
    "test_sample_clocks.py": 12.0,
    "test_untrusted_callables.py": 60.0,
}
_LONGEST_FILE_S, _LONGEST_SANITIZED_S = 240.0, 150.0
_SANITIZER_FOUND = 86
_PROGRAM_FAILED = "Target application returned an error"  # by --check-exit-code, which is on
_LONGEST_NOTE = 600
_PACKAGES = ("torch", "jax", "cupy", "tensorflow", "onnxruntime", "msgspec", "scipy")
_REST_S = 5.0


def run(record: PartRecord, deadline: Deadline) -> None:
    files = sorted((ROOT / "tests/gpu").glob("test_*.py"), key=lambda file: (file.name == _LAST, file.name))
    steps = [
        Step(file.name, _NEEDS_S.get(file.name, 12.0), partial(_tested, record, deadline, file))
        for file in files
        if file.name != _LAST
    ]
    steps += [Step(f"compute-sanitizer {tool}", 60, partial(_sanitized, record, deadline, tool)) for tool in _TOOLS]
    steps += [Step(file.name, 30, partial(_tested, record, deadline, file)) for file in files if file.name == _LAST]
    steps += [Step(f"tests that need {name}", 0, partial(_not_skipped, record, name)) for name in _PACKAGES]
    record.take([*steps, Step("summary", 0, partial(_goal, record))], deadline)


def _tested(record: PartRecord, deadline: Deadline, file: Path) -> None:
    report = Path(os.environ.get("TMPDIR", "/tmp")) / f"fairlap-gpu-{os.getpid()}-{file.stem}.xml"
    command = [sys.executable, "-m", "pytest", str(file), f"--junit-xml={report}", "-p", "no:cacheprovider", "-q"]
    limit_s = min(_LONGEST_FILE_S if file.name != _LAST else 10_000.0, deadline.left_s() - _REST_S)
    interruption = ""
    try:
        done = subprocess.run([*command, "--tb=short"], cwd=ROOT, timeout=limit_s, check=False, capture_output=True)
        print(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), flush=True)
        if not report.exists():
            interruption = f"exit status {done.returncode}: {_last(done.stdout) or _last(done.stderr)}"
    except subprocess.TimeoutExpired:
        interruption = f"stopped after {limit_s:.0f} s"
    if report.exists():
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            record.row("tests", file=file.name, **_case(case))
        report.unlink()
    if interruption:
        record.row("tests", file=file.name, test="(the file)", outcome="interrupted", note=interruption, seconds=None)


def _case(case: ElementTree.Element) -> dict[str, object]:
    figures = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
    row: dict[str, object] = {"test": case.attrib["name"], "seconds": float(case.attrib.get("time", 0))}
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            why = found.attrib.get("message", "") or (found.text or "")
            return row | {"outcome": outcome, "note": " ".join(why.split())[:400], **figures}
    return row | {"outcome": "passed", "note": "", **figures}


# memcheck also finds leaks on the device. Each tool runs every kernel and call of the engine, and no framework.
_TOOLS = {"memcheck": ("--leak-check", "full"), "racecheck": (), "synccheck": ()}


def _sanitized(record: PartRecord, deadline: Deadline, tool: str) -> None:
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if sanitizer is None:
        raise NotHere("compute-sanitizer is not installed", "compute-sanitizer")
    command = [sanitizer, "--tool", tool, *_TOOLS[tool], "--error-exitcode", str(_SANITIZER_FOUND)]
    command += [sys.executable, "-m", "tests.gpu.probes.every_call"]
    limit_s = min(_LONGEST_SANITIZED_S, deadline.left_s() - _REST_S)
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=limit_s, check=False, capture_output=True)
    except subprocess.TimeoutExpired:
        record.row("compute-sanitizer", tool=tool, outcome="interrupted", note=f"stopped after {limit_s:.0f} s")
        return
    text = (done.stdout + done.stderr).decode(errors="replace")
    print(text, flush=True)
    outcome = {0: "clean", _SANITIZER_FOUND: "errors"}.get(done.returncode, f"ended with status {done.returncode}")
    failed = _PROGRAM_FAILED in text
    if failed and done.returncode == _SANITIZER_FOUND:  # the sanitizer counts a failed program as an error too
        outcome = "errors, and the program failed"
    says = _findings(text) or [_last(done.stdout) or _last(done.stderr)]
    if (failed or done.returncode not in (0, _SANITIZER_FOUND)) and done.stderr.strip():
        says.insert(0, _last(done.stderr))  # of the program, whose status it is
    record.row("compute-sanitizer", tool=tool, outcome=outcome, note="; ".join(dict.fromkeys(says))[:_LONGEST_NOTE])


def _findings(text: str) -> list[str]:
    """Take the summary, and what was found, each once and without its addresses, backtrace and details.

    Those are indented behind the prefix of each line (Compute Sanitizer's documentation, sample outputs).
    """
    lines = [line.removeprefix("========= ") for line in text.splitlines() if line.startswith("========= ")]
    heads = [re.sub(r"\b0x[0-9a-f]+", "0x...", line) for line in lines if line[:1].strip() and line.upper() != line]
    return [*(line for line in lines if "SUMMARY" in line), *dict.fromkeys(heads)]


def _not_skipped(record: PartRecord, package: str) -> None:
    skipped = [row for row in record.rows("tests") if row["outcome"] == "skipped" and _names(row["note"], package)]
    if skipped:
        raise NotHere(f"{len(skipped)} tests were skipped; the first: {skipped[0]['note']}", package)


def _names(reason: str, package: str) -> bool:
    """Whether a test was skipped for want of this package, or of CUDA in it."""
    words = re.findall(r"[a-z0-9_]+", reason.lower().replace("onnx runtime", "onnxruntime").replace("pytorch", "torch"))
    return package in words or any(word.startswith(f"{package}_") for word in words)


def _goal(record: PartRecord) -> None:
    tests = record.rows("tests")
    if not any(row["outcome"] == "passed" for row in tests):
        raise RuntimeError("not one test passed")
    bad = [row for row in tests if row["outcome"] in ("failed", "interrupted")]
    passed = sum(row["outcome"] == "passed" for row in tests)
    skipped = sum(row["outcome"] == "skipped" for row in tests)
    record.goal(
        "tests of tests/gpu that fail",
        "0",
        len(bad) if tests else None,
        "",
        reached=(not bad and passed > 0) if tests else None,
        why=f"{passed} passed, {skipped} skipped" if tests else "none ran",
    )
    sanitized = record.rows("compute-sanitizer")
    clean = all(row["outcome"] == "clean" for row in sanitized)
    record.goal(
        "errors that compute-sanitizer finds in the engine",
        "none",
        None if not sanitized else sum(row["outcome"] != "clean" for row in sanitized),
        "",
        reached=clean if sanitized else None,
        why="; ".join(f"{row['tool']}: {row['note']}" for row in sanitized if row["outcome"] != "clean")
        if sanitized
        else "compute-sanitizer is not installed",
    )


def _last(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"
