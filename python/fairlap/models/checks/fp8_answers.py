"""How far an answer in fp8 may be off, by what rounding the weights and inputs of a model to fp8 changes in it.

Of the factors of a product both are rounded, in every layer. The reference is evaluated with its weights and inputs
rounded: that is one half of all roundings, and the answer of a right computation is off by about the root of two times
as much. It is evaluated with several scales, as calibrations choose others, which rounds numbers in another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.models.fp8_graphs.fp8_numbers import LARGEST, rounded_to_fp8
from fairlap.models.spec import Tolerance

Answered = Callable[[Arrays, Arrays], Mapping[str, npt.NDArray[Any]]]

HEADROOMS = (1.0, 1.5)
"""How many times the largest number of an array its scale has room for."""

MARGIN = 2.0
"""Right answers of fifteen built-in models used half to three quarters of it, wrong scales up to 19 times as much."""

_OF_ONE_ELEMENT = 1.5  # of the margin: the largest of a few is exceeded more easily than a norm
_ROUNDED_AT_ONCE = 2**20
_LEAST = 1e-3  # relative: an answer without products is in float32


class InFp8(Mapping[str, npt.NDArray[Any]]):
    """Arrays whose floating-point numbers are rounded when they are read; vectors, as those of biases, are not."""

    def __init__(self, arrays: Arrays, headroom: float) -> None:
        self._arrays, self._headroom = arrays, headroom

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        array = self._arrays[name]
        if array.dtype.kind != "f" or array.ndim < 2 or not array.size:
            return array
        scale = max(float(array.max()), -float(array.min())) * self._headroom / LARGEST
        if not scale > 0:
            return array
        values = array.astype(array.dtype, order="C")
        flat = values.reshape(-1)
        for first in range(0, flat.size, _ROUNDED_AT_ONCE):  # which need little memory beside them
            some = flat[first : first + _ROUNDED_AT_ONCE]
            some[...] = rounded_to_fp8(some / scale) * scale
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def fp8_tolerances(
    answered: Answered, weights: Arrays, sets: Sequence[Arrays], exact: Sequence[Arrays]
) -> dict[str, Tolerance]:
    """Compute the tolerance of each output; ``exact`` are the float64 answers to each of the sets of inputs."""
    found = dict.fromkeys(exact[0], (_LEAST, 0.0))
    for inputs, answers in zip(sets, exact, strict=True):
        for headroom in HEADROOMS:
            rounded = answered(InFp8(weights, headroom), dict(InFp8(inputs, headroom)))
            for name, (share, worst) in found.items():
                difference, norm = np.abs(rounded[name] - answers[name]), float(np.linalg.norm(answers[name]))
                usual = norm / math.sqrt(max(1, difference.size))
                off = float(np.linalg.norm(difference)) / norm if norm else 0.0
                found[name] = (
                    max(share, MARGIN * off),
                    max(worst, _OF_ONE_ELEMENT * MARGIN * float(difference.max(initial=0.0)), _LEAST * usual),
                )
    return {name: fp8_tolerance(worst, share) for name, (share, worst) in found.items()}


def fp8_tolerance(worst: float, share: float) -> Tolerance:
    """Bound the worst element, and the norm of the difference as a share of the answer's."""
    return Tolerance(cosine=-1.0, absolute=worst, relative=_LEAST, norm=share)
