"""Weights that a LiteRT file holds in float16 or sparse, as LiteRT expands them when it loads the file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.onnx_graphs.binding import require_room

Array = npt.NDArray[Any]

EXPANDING = ("DENSIFY", "DEQUANTIZE")  # the operators that do it
_DENSE = 0  # DimensionType; the other one is SPARSE_CSR


def expanded_weight(stored: Array, tensor: Any, name: str, *, widened: bool) -> Array:
    """Of the numbers in the buffer of a tensor."""
    shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
    try:
        require_room(math.prod(shape), name)
        found = stored.reshape(shape) if tensor.sparsity is None else _dense(stored, shape, tensor.sparsity)
    except (IndexError, ValueError, TypeError, AttributeError) as error:  # of what LiteRT does not verify
        raise SourceError(f"the file is damaged: {name} does not fit its shape ({error})") from None
    return found.astype(np.float32) if widened else found


def _dense(stored: Array, shape: tuple[int, ...], sparsity: Any) -> Array:
    """Walk the levels of the format, which lead to the stored numbers in their order; what none leads to is 0.

    The levels are the axes and then those within blocks, in an order of their own. A dense level has all places, one
    in compressed rows the ones that are listed for each place of the level before.
    """
    most = math.prod(shape)
    places: list[Array] = []  # by level, of each number
    before = np.zeros(1, np.int64)  # the places in the last level, counted through
    for level in sparsity.dimMetadata:
        if level.format == _DENSE:
            counts = np.full(len(before), level.denseSize, np.int64)
            first = before * level.denseSize
        else:
            segments = np.asarray(level.arraySegments.values, np.int64)
            first, counts = segments[before], segments[before + 1] - segments[before]
        if (counts < 0).any() or counts.sum() > most:
            raise ValueError("it has more numbers than places")
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        before = np.repeat(first, counts) + within
        places = [np.repeat(each, counts) for each in places]
        places.append(within if level.format == _DENSE else np.asarray(level.arrayIndices.values, np.int64)[before])
    axes: list[Array] = [np.zeros(len(before), np.int64)] * len(shape)
    for axis, place, level in zip(sparsity.traversalOrder, places, sparsity.dimMetadata, strict=True):
        if axis < len(shape):
            axes[axis] = place
        else:
            outer = sparsity.blockMap[axis - len(shape)]
            axes[outer] = axes[outer] * level.denseSize + place
    found = np.zeros(shape, stored.dtype)
    found[tuple(axes)] = stored
    return found
