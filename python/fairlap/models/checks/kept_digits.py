"""How many decimal digits an answer keeps, and how many the problem leaves to any algorithm.

A problem amplifies the rounding of its own inputs: what the answer moves by when each input is moved by one rounding is
the error that no algorithm can be blamed for (Higham, Accuracy and Stability of Numerical Algorithms, section 1.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import OutputError

Array = npt.NDArray[Any]
Forward = Callable[[Arrays, Arrays], Mapping[str, Array]]

_DRAWS = 3  # of the signs of roundings; the largest change counts
_SEED = 20


def digits(relative: float, roundoff: float) -> float:
    """Convert a relative error into decimal digits: none where it is 1 or more, at most those of the precision."""
    most = -math.log10(roundoff)
    if not relative < 1:  # an error that is not a number keeps none
        return 0.0
    return most if relative <= roundoff else -math.log10(relative)


def any_error(name: str, got: Array, expected: Array, by_element: bool) -> OutputError:
    """Measure an answer that may be off by any amount. Only one of another shape is wrong.

    Where the reference is NaN or infinite, the answer must be the same, and finite elsewhere; otherwise its error is
    infinite.
    """
    if got.shape != expected.shape:
        why = f"its shape is {list(got.shape)}, not {list(expected.shape)}"
        return OutputError(name, math.nan, math.inf, math.inf, why)
    values = got.astype(np.float64)
    if other_kinds(values, expected):
        return OutputError(name, math.nan, math.inf, math.inf)
    finite = np.isfinite(expected)
    relative, worst = _relative(values[finite], expected[finite], by_element)
    return OutputError(name, math.nan, worst, relative)


def other_kinds(values: Array, expected: Array) -> int:
    """Count the elements that are NaN, plus infinity, minus infinity or finite where the reference is another."""
    alike = np.isfinite(values) & np.isfinite(expected)
    alike |= np.isnan(values) & np.isnan(expected)
    alike |= np.isinf(expected) & (values == expected)
    return int(np.count_nonzero(~alike))


def smallest_error(
    forward: Forward,
    weights: Arrays,
    inputs: Arrays,
    roundoff: float,
    by_element: bool,
    largest_number: float = math.inf,
) -> float:
    """Find by how much the answer moves, relatively, when each weight and input is moved by one rounding.

    At least one rounding: the answer itself is rounded. One beyond the largest number of the precision is lost whole.
    """
    rng = np.random.default_rng(_SEED)
    expected, largest = forward(weights, inputs), roundoff
    if any(np.any(np.isfinite(values) & (np.abs(values) > largest_number)) for values in expected.values()):
        return 1.0
    for _ in range(_DRAWS):
        moved = forward(_moved(weights, roundoff, rng), _moved(inputs, roundoff, rng))
        for name, values in expected.items():
            finite = np.isfinite(values) & np.isfinite(moved[name])
            largest = max(largest, _relative(moved[name][finite], values[finite], by_element)[0])
    return largest


def _moved(arrays: Arrays, roundoff: float, rng: np.random.Generator) -> Arrays:
    with np.errstate(invalid="ignore"):
        return {name: array * (1 + roundoff * rng.choice((-1.0, 1.0), array.shape)) for name, array in arrays.items()}


def _relative(values: Array, expected: Array, by_element: bool) -> tuple[float, float]:
    """Return the relative error and the largest absolute one."""
    difference = np.abs(values - expected)
    worst = float(difference.max(initial=0.0))
    if not worst:
        return 0.0, 0.0
    if by_element:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nanmax(difference / np.abs(expected))), worst
    # Scaled first, so that no square vanishes or overflows.
    scale = max(worst, float(np.abs(expected).max()))
    norm = float(np.linalg.norm(expected / scale))
    return (float(np.linalg.norm(difference / scale)) / norm if norm else math.inf), worst
