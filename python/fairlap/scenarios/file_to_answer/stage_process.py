"""Run the user's functions around a model once for every file, in a separate process, and write what they return.

``python -m fairlap.scenarios.file_to_answer.stage_process`` reads an ``Order`` from standard input and prints an
``Outcome``. Each function is called twice on the same, since contestants would do other work where that differs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.machine.programs.guardian import guarded
from fairlap.models.array_files import safetensors
from fairlap.models.sources.confinement import replies
from fairlap.request.fields.data.stages import Stages
from fairlap.scenarios.file_to_answer.answer_values import AnswerValue, as_arrays, same, value_of
from fairlap.scenarios.file_to_answer.stage_functions import InputForm, StageFailed, StageFunctions


class Order(msgspec.Struct, frozen=True):
    stages: Stages
    inputs: tuple[InputForm, ...]
    folder: str  # for all files
    step: Literal["before", "after"]
    moved: int = 0  # how many sets of moved outputs each item has


class Outcome(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


def inputs_file(folder: Path, item: int) -> Path:
    return folder / f"inputs-{item}.safetensors"


def outputs_file(folder: Path, item: int, moved: int) -> Path:
    """Find a file of outputs: 0 are the reference's own, the others are moved."""
    return folder / f"outputs-{item}-{moved}.safetensors"


def answer_file(folder: Path, item: int, moved: int) -> Path:
    return folder / f"answer-{item}-{moved}.safetensors"


def carry_out(order: Order) -> None:
    functions, folder = StageFunctions(order.stages), Path(order.folder)
    for item, name in enumerate(order.stages.names):
        if order.step == "before":
            inputs = _inputs(functions, order, item)
            safetensors.write(inputs_file(folder, item), inputs)
            continue
        first, again = (_answer(functions, folder, item, 0) for _ in range(2))
        if not same(first, again):
            raise _differs(" or ".join(order.stages.after), name)
        safetensors.write(answer_file(folder, item, 0), as_arrays(first))
        for moved in range(1, order.moved + 1):
            try:
                answer = _answer(functions, folder, item, moved)
            except StageFailed:  # of outputs that no contestant may give
                continue
            safetensors.write(answer_file(folder, item, moved), as_arrays(answer))


def _inputs(functions: StageFunctions, order: Order, item: int) -> dict[str, np.ndarray]:
    file = order.stages.files[item]
    first: dict[str, AnswerValue] = {}
    value = functions.inputs_of(file, _into(first))
    inputs = functions.checked(value, order.inputs, file.name)
    again: dict[str, AnswerValue] = {}
    functions.inputs_of(file, _into(again))
    for label, seen in first.items():
        if not same(seen, again[label]):
            raise _differs(label, file.name)
    return inputs


def _into(seen: dict[str, AnswerValue]) -> Callable[[str, Any], None]:
    """Keep the content of what each function returned, before the next one may change it."""

    def look(label: str, value: Any) -> None:
        seen[label] = value_of(value)

    return look


def _answer(functions: StageFunctions, folder: Path, item: int, moved: int) -> AnswerValue:
    outputs = safetensors.read(outputs_file(folder, item, moved))
    own = {name: np.array(array) for name, array in outputs.items()}  # that a function may write to
    return value_of(functions.answer_of(own, functions.stages.names[item]))


def _differs(label: str, item: str) -> StageFailed:
    return StageFailed(
        f"{label} gives something else for {item} when it is called again, so contestants would not do the same work; "
        "let it draw nothing at random and keep nothing"
    )


def main() -> None:
    guarded(sys.stdout.fileno())
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answers = replies()
    try:
        carry_out(order)
        outcome = Outcome()
    except FairlapError as error:
        outcome = Outcome(error.code, str(error))
    except Exception as error:
        import traceback

        traceback.print_exc()
        outcome = Outcome(StageFailed.code, f"the functions of --before and --after failed: {described(error)}")
    answers.write(msgspec.json.encode(outcome))
    answers.flush()
    os._exit(0)  # exit handlers of frameworks can hang


if __name__ == "__main__":
    main()
