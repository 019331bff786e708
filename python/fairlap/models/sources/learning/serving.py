"""A process that computes the gradients and outputs of a user's model for the reference of its training.

``python -m fairlap.models.sources.learning.serving`` reads a ``Begin``, then an ``Ask`` in each line of standard input,
and prints a ``Computed`` for each of them. Arrays are exchanged as files. The parent never imports a framework, and a
model that is not trusted is read in the sandbox in which it was opened.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.machine.programs.guardian import guarded
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import filled_batches, joined_items, under
from fairlap.models.sources.confinement import confine_to, replies
from fairlap.models.sources.contract import Learner
from fairlap.models.sources.registry import require_kind
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import LOSS, Batch, Slopes
from fairlap.request.fields.source import Source

WEIGHT, INPUT, GRADIENT, AVERAGE = "weight/", "input/", "gradient/", "average/"


class Begin(msgspec.Struct, frozen=True):
    source: Source
    files: tuple[str, ...]
    folder: str  # of the bundle
    scratch: str  # where arrays are exchanged


class Ask(msgspec.Struct, frozen=True):
    given: str  # a file of weights, inputs and labels
    answer: str  # a file to write
    training: bool = False
    batch: int = 0  # above 0, the outputs of all items are asked for, in batches of this size, instead of gradients


class Computed(msgspec.Struct, frozen=True):
    error: str = ""


def as_arrays(slopes: Slopes) -> dict[str, Any]:
    found: dict[str, Any] = {LOSS: np.asarray(slopes.loss, np.float64)}
    found |= {GRADIENT + name: array for name, array in slopes.gradients.items()}
    return found | {AVERAGE + name: array for name, array in slopes.averages.items()}


def as_slopes(arrays: Any) -> Slopes:
    return Slopes(float(arrays[LOSS]), under(GRADIENT, arrays), under(AVERAGE, arrays))


def _answer(learner: Learner, ask: Ask) -> None:
    arrays = safetensors.read(Path(ask.given))
    weights = {name.removeprefix(WEIGHT): each for name, each in arrays.items() if name.startswith(WEIGHT)}
    inputs = {name.removeprefix(INPUT): each for name, each in arrays.items() if name.startswith(INPUT)}
    if ask.batch:
        items = len(next(iter(inputs.values())))
        answers = [learner.outputs(weights, each) for each in filled_batches(inputs, ask.batch)]
        safetensors.write(Path(ask.answer), joined_items(answers, items))
        return
    slopes = learner.slopes(weights, Batch(inputs, arrays.get(LABELS)), ask.training)
    safetensors.write(Path(ask.answer), as_arrays(slopes))


def main() -> None:
    os.umask(0o077)
    guarded(sys.stdout.fileno())
    answers = replies()
    begin = msgspec.json.decode(sys.stdin.buffer.readline(), type=Begin)
    confine_to(begin.source, begin.files, Path(begin.folder), Path(begin.scratch))
    learner: Learner | None = None
    for line in sys.stdin.buffer:
        try:
            if learner is None:
                learner = require_kind(begin.source).learner(begin.source, Path(begin.folder))
            _answer(learner, msgspec.json.decode(line, type=Ask))
            outcome = Computed()
        except FairlapError as error:
            outcome = Computed(str(error))
        except Exception as error:  # of the user's code and of frameworks
            outcome = Computed(described(error))
        answers.write(msgspec.json.encode(outcome) + b"\n")
        answers.flush()
    os._exit(0)  # exit handlers of frameworks can hang


if __name__ == "__main__":
    main()
