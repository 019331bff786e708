"""NumPy as right runtimes differ: each rounds where it likes, and a value near a rounding edge goes either way.

A graph that computes in sixteen bits or in steps of integers has no single right answer. Each of these libraries gives
one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.models.fp8_graphs.fp8_numbers import LARGEST, steps_between
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary, is_floating

MOVED_BY = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 64 * 2.0**-24}
"""Relative to a result. Frameworks sum float32 in any order, and may be off by 64 roundings, as in the check of a
float32 model. With fewer bits they sum in float32 and round a result once, by this at most."""
MOST_EDGES = 16  # values of a quantiser, one of which takes the other step


class _OfAFewBits(NumPyLibrary):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = seed
        self.drawn = np.random.default_rng(seed)

    def begin(self) -> None:
        """Give the same answer to each call."""
        self.drawn = np.random.default_rng(self._seed)


class InTypesOfFile(_OfAFewBits):
    """Every result is rounded to the type that the file gives it."""

    def leave(self, value: Any, dtype: str) -> Any:
        array = np.asarray(value)
        if dtype not in MOVED_BY or not is_floating(array.dtype):
            return value
        with np.errstate(over="ignore"):
            return array.astype(np.dtype(dtype)).astype(np.float64)


class WithRoundings(_OfAFewBits):
    """Every result of arithmetic is moved by what its type rounds away, up or down, also before it is quantised."""

    def leave(self, value: Any, dtype: str) -> Any:
        array = np.asarray(value)
        if dtype not in MOVED_BY or not is_floating(array.dtype):
            return value
        return self._moved(array, MOVED_BY[dtype])

    def to_step(self, value: Any, zero: Any, low: int, high: int) -> Any:
        return super().to_step(self._moved(np.asarray(value), MOVED_BY["float32"]), zero, low, high)

    def to_fp8(self, value: Any) -> Array:
        return super().to_fp8(self._moved(np.asarray(value), MOVED_BY["float32"]))

    def _moved(self, array: Array, share: float) -> Array:
        """By this share of each value, or of the usual one where that is larger; zeros stay."""
        finite = np.isfinite(array)
        if not finite.any():
            return array
        usual = np.sqrt(np.mean(np.square(array[finite])))
        with np.errstate(invalid="ignore"):
            moved = array + share * self.drawn.choice((-1.0, 1.0), array.shape) * np.maximum(np.abs(array), usual)
        return np.where(finite & (array != 0), moved, array)


class WithoutDynamicSteps(_OfAFewBits):
    """Values whose steps would be chosen for them in each call stay real numbers, as OpenVINO keeps them."""

    def to_dynamic_steps(self, value: Any, zero: Any) -> Any:
        return np.asarray(value) + zero


class OnOtherEdges(_OfAFewBits):
    """In every quantiser one of the values that are nearest to a rounding edge takes the other step."""

    def to_step(self, value: Any, zero: Any, low: int, high: int) -> Any:
        array = np.asarray(value)
        rounded = np.array(super().to_step(array, zero, low, high))
        past = array - np.round(array)
        place = self._at_an_edge(np.where((rounded > low) & (rounded < high), past, 0.0))
        if place is not None:
            rounded[place] += 1 if past[place] > 0 else -1
        return rounded

    def to_fp8(self, value: Any) -> Array:
        array = np.asarray(value)
        rounded, steps = np.array(super().to_fp8(array)), steps_between(array)
        past = np.where(np.abs(rounded) < LARGEST, (array - rounded) / steps, 0.0)
        place = self._at_an_edge(past)
        if place is not None:
            rounded[place] += np.copysign(steps[place], past[place])
        return rounded

    def _at_an_edge(self, past: Array) -> tuple[Any, ...] | None:
        """Draw one of the values that are nearest to half a step from their own; 0 where there is no other step."""
        distance = np.where(past != 0, 0.5 - np.abs(past), np.inf).reshape(-1)
        count = min(MOST_EDGES, distance.size)
        nearest = np.argpartition(distance, count - 1)[:count] if count else np.array([], np.int64)
        nearest = nearest[np.isfinite(distance[nearest])]
        return np.unravel_index(self.drawn.choice(nearest), past.shape) if nearest.size else None
