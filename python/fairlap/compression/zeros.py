"""Set the smallest weights to 0: a share of each array, or two of each four that a product adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FOUR, _LEFT = 4, 2


def with_share_of_zeros(weights: Array, share: float) -> Array:
    """Keep the largest by magnitude; of equal ones the first."""
    found = weights.copy()
    smallest = np.argsort(np.abs(weights), axis=None, kind="stable")[: round(share * weights.size)]
    found.reshape(-1)[smallest] = 0
    return found


def with_two_of_four(weights: Array, axis: int) -> Array | None:
    """Keep two of each four along the axis that a product adds up; None where its size is no multiple of four."""
    if weights.shape[axis] % _FOUR:
        return None
    rows = np.moveaxis(weights, axis, -1)
    fours = rows.reshape(-1, _FOUR).copy()
    smallest = np.argsort(np.abs(fours), axis=1, kind="stable")[:, : _FOUR - _LEFT]
    np.put_along_axis(fours, smallest, 0, axis=1)
    return np.ascontiguousarray(np.moveaxis(fours.reshape(rows.shape), -1, axis))
