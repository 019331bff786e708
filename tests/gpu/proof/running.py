"""Run one part in a separate process: it may crash, hang or break the device, and the others still run."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from .machine import ROOT
from .parts import Part
from .record import FAILED, RUNNING, TIMED_OUT, Deadline, Json, PartRecord, read, write_end

GRACE_S = 20.0  # for the end of a part, and for a step that is a little late
_LOOK_EVERY_S = 5.0


def run_part(
    part: Part,
    folder: Path,
    *,
    seconds: float,
    resume: bool,
    grace_s: float = GRACE_S,
    only: Sequence[str] = ("*",),
    meanwhile: Callable[[], object] = lambda: None,
) -> Json:
    """Run a part and return its record, however it ended. ``meanwhile`` is called every few seconds."""
    path = record_file(folder, part.number)
    log = folder / f"part-{part.number}.log"
    folder.mkdir(parents=True, exist_ok=True)
    if not resume:
        path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.gpu.proof.running", "--module", part.module, "--record", str(path)]
    command += ["--number", str(part.number), "--title", part.title, "--seconds", str(seconds)]
    command += ["--resume"] if resume else []
    command += [f"--only={pattern}" for pattern in only]
    with log.open("ab" if resume else "wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = _wait(process, seconds + grace_s, meanwhile)
        except subprocess.TimeoutExpired:
            _end(process)
            write_end(path, part.number, part.title, TIMED_OUT, f"stopped after {seconds + grace_s:.0f} s")
            status = 0
        except BaseException:
            _end(process)
            raise
    content = read(path)
    if status != 0 or content is None or content["status"] == RUNNING:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        write_end(path, part.number, part.title, FAILED, f"{how}: {_last_line(log)}")
    return read(path) or {}


def _wait(process: subprocess.Popen[bytes], limit_s: float, meanwhile: Callable[[], object]) -> int:
    limit = Deadline(limit_s)
    while True:
        try:
            return process.wait(min(_LOOK_EVERY_S, max(0.0, limit.left_s())))
        except subprocess.TimeoutExpired:
            if limit.left_s() <= 0:
                raise
            meanwhile()


def record_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number}.json"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything that it started in its session."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    process.wait()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", required=True)
    parser.add_argument("--record", required=True, type=Path)
    parser.add_argument("--number", required=True, type=int)
    parser.add_argument("--title", required=True)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--only", action="append")
    given = parser.parse_args()
    deadline = Deadline(given.seconds)
    record = PartRecord(given.record, given.number, given.title, resume=given.resume, only=given.only or ("*",))
    import_module(given.module).run(record, deadline)
    record.end()


if __name__ == "__main__":
    main()
