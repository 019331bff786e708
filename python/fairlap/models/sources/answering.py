"""Answer any inputs by a user's model as its kind reads it, in a process that lives as long as a race.

``python -m fairlap.models.sources.answering`` reads a ``Source`` as the first line of standard input. Every further
line is the path of a file with inputs; their float64 answers are written to ``answers_beside`` it, and an ``Answered``
is printed. The process ends with its input. Without trust it reads the model in a sandbox, and files beside the first
one of inputs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError, described
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.guardian import guarded
from fairlap.models.array_files import safetensors
from fairlap.models.sources.allowances import widened
from fairlap.models.sources.confinement import confine_to, explained, replies
from fairlap.models.sources.contract import Opened
from fairlap.models.sources.opening import hashes_of
from fairlap.models.sources.proof import (
    outputs_of,
    plain_outputs,
    require_usable,
    tolerances,
)
from fairlap.models.sources.registry import require_kind
from fairlap.models.spec import Tolerance
from fairlap.request.fields.source import Source

_LIMIT_S = 86_400.0  # of all questions of a race


class Answered(msgspec.Struct, frozen=True):
    tolerances: dict[str, Tolerance] = {}  # of float32, by output, for these inputs
    code: str = ""
    message: str = ""


def answers_beside(inputs: Path) -> Path:
    return inputs.with_suffix(".answers")


def _opened(source: Source, beside: Path, scratch: Path) -> Opened:
    """Open the model that the race was planned with, and not another that was written in its place meanwhile."""
    confine_to(source, hashes_of(source), beside, scratch, cpu_s=_LIMIT_S)
    return require_kind(source).open(source, scratch)


def _answered(found: Opened, file: Path) -> Answered:
    inputs = safetensors.read(file)
    answers = outputs_of(found.forward, found.weights, inputs)
    require_usable(answers)
    plain = plain_outputs(found.in_float32, found.weights, inputs)
    allowed = tolerances(found.forward, found.weights, inputs, answers, plain)
    allowed = widened(allowed, found, inputs, answers)
    safetensors.write(answers_beside(file), answers)
    return Answered(allowed["fp32"])


def main() -> None:
    guarded(sys.stdout.fileno())
    source = msgspec.json.decode(sys.stdin.readline(), type=Source)
    answers = replies()
    with ScratchFolder() as scratch:
        found: Opened | None = None
        for line in sys.stdin:
            try:
                file = Path(line.rstrip("\n"))
                found = found or _opened(source, file.parent, scratch)
                reply = _answered(found, file)
            except FairlapError as error:
                code, message = explained(source, error.code, str(error), error)
                reply = Answered(code=code, message=message)
            except Exception as error:
                message = f"{source.shown} cannot answer what it is fed: {described(error)}"
                code, message = explained(source, "E_SOURCE", message, error)
                reply = Answered(code=code, message=message)
            answers.write(msgspec.json.encode(reply) + b"\n")
            answers.flush()
    os._exit(0)  # exit handlers of frameworks can hang


if __name__ == "__main__":
    main()
