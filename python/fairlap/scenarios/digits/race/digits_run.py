"""One more answer of a process, for the kinds of its elements, and the digits that the problem leaves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.checks.kept_digits import other_kinds, smallest_error
from fairlap.models.operations.hard import Hard
from fairlap.models.operations.kinds import operation_named
from fairlap.models.registry import reference_at
from fairlap.models.spec import UNIT_ROUNDOFF
from fairlap.race.equal_work.materials import IN_TURN, Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.request.work import Precision
from fairlap.scenarios.digits.digits_found import DigitsFound

_LARGEST_NUMBER: Mapping[Precision, float] = {"fp16": float(np.finfo(np.float16).max)}
_LARGEST_OF_FLOAT32 = float(np.finfo(np.float32).max)  # and nearly that of bfloat16


class DigitsRun(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._materials, self._limit_s = materials, plan.limits.answer_s
        self._file = scratch / "digits-answer.safetensors"
        self._is_open = True

    def goes_on(self, bench: Bench) -> bool:
        return self._is_open

    def step(self, process: OneProcess) -> None:
        self._is_open = False
        self._file.unlink(missing_ok=True)
        process.worker.answer("inputs", self._file, within_s=self._limit_s)
        got, expected = safetensors.read(self._file), self._materials.reference("inputs")
        elements = sum(array.size for array in expected.values())
        others = sum(other_kinds(got[name].astype(np.float64), array) for name, array in expected.items())
        process.result.digits = digits_possible(self._materials, others, elements)


def digits_possible(materials: Materials, others: int = 0, elements: int = 0) -> DigitsFound:
    roundoff = UNIT_ROUNDOFF[materials.work.precision]
    inputs = tuple(str(materials.inputs_file(which)) for which in IN_TURN)
    largest = _LARGEST_NUMBER.get(materials.work.precision, _LARGEST_OF_FLOAT32)
    least = _least_error(
        materials.work.model, materials.package, str(materials.weights_file), inputs, roundoff, largest
    )
    return DigitsFound(roundoff, least, others, elements)


@cache
def _least_error(
    model: str, package: str, weights_file: str, inputs: tuple[str, ...], roundoff: float, largest: float
) -> float:
    """Of the inputs on which the problem amplifies rounding the most."""
    operation = operation_named(model)
    assert isinstance(operation, Hard)
    forward, weights = reference_at(package).forward, _in_float64(safetensors.read(Path(weights_file)))
    return max(
        smallest_error(
            forward, weights, _in_float64(safetensors.read(Path(file))), roundoff, operation.by_element, largest
        )
        for file in inputs
    )


def _in_float64(arrays: Arrays) -> Arrays:
    return {name: array.astype(np.float64) for name, array in arrays.items()}
