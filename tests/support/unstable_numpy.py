"""A framework in NumPy whose variants lose digits, or whose answers do not repeat, one way each.

The first one computes in float32 as the reference does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from numpy_framework import NumpyFramework, copied, in_float32, in_force

_FIRST_CALLS = 30  # of the checks before the timing, and a few timed ones


class UnstableNumpy(NumpyFramework):
    """``of_squares`` is the variance as the mean of squares less the square of the mean.

    ``tenfold`` is ten times too large, and ``first`` in all calls but its first ones. The others are right, and off by
    one unit in the last place: some elements in each call, or all with another number of threads, or in a batch.
    """

    name = "unstable"
    variants = ("", "of-squares", "tenfold", "first", "call", "threads", "batch")
    modes: ClassVar = ("infer",)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        forward = work.implementation_of_reference().forward
        weights, calls, rng = in_float32(work.weights), itertools.count(), np.random.default_rng()
        off = {
            "threads": wanted.threads > 1,
            "batch": len(next(iter(work.inputs.values()))) > 1,
        }.get(wanted.variant, False)

        def answer(inputs: Arrays) -> dict[str, Any]:
            number = next(calls)
            if wanted.variant == "of-squares":
                numbers = inputs["numbers"]
                return {"result": np.mean(numbers**2, -1) - np.mean(numbers, -1) ** 2}
            found = in_float32(forward(weights, inputs))
            if wanted.variant == "tenfold" or (wanted.variant == "first" and number > _FIRST_CALLS):
                return {name: 10 * array for name, array in found.items()}
            moved = {name: np.nextafter(array, np.float32(np.inf)) for name, array in found.items()}
            if wanted.variant == "call":
                return {name: np.where(rng.random(each.shape) < 0.5, each, moved[name]) for name, each in found.items()}
            return moved if off else found

        def bind(inputs: Arrays) -> Callable[[], dict[str, Any]]:
            held = copied(inputs)
            return lambda: answer(held)

        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda result: result,
            weights=lambda: copied(weights),
            in_force=in_force(work, wanted),
        )
