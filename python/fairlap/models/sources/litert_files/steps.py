"""The steps of a tensor that LiteRT holds in whole numbers: which real numbers these are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.sources.contract import SourceError

Array = npt.NDArray[Any]

IN_STEPS = ("int8", "uint8", "int16")  # types that values are rounded to
ACCUMULATED = ("int32", "int64")  # types of a bias, which is added to sums of products


@dataclass(frozen=True)
class Steps:
    """A whole number ``q`` is the real number ``(q - zero) * scale``; both follow an axis where they are many."""

    dtype: str
    scales: Array  # one, or as many as the axis is long; in float32
    zeros: Array
    axis: int = 0

    @property
    def is_one(self) -> bool:
        return len(self.scales) == 1

    def same_as(self, other: Steps | None) -> bool:
        return (
            other is not None
            and (self.dtype, self.axis if len(self.scales) > 1 else 0)
            == (other.dtype, other.axis if len(other.scales) > 1 else 0)
            and np.array_equal(self.scales, other.scales)
            and np.array_equal(self.zeros, other.zeros)
        )

    def along(self, axis: int) -> Steps:
        return Steps(self.dtype, self.scales, self.zeros, axis)

    def real(self, held: Array) -> Array:
        """Compute the real numbers of what the file holds."""
        shape = [-1 if place == self.axis else 1 for place in range(held.ndim)] if not self.is_one else ()
        scales, zeros = self.scales.reshape(shape), self.zeros.reshape(shape)
        return ((held.astype(np.float64) - zeros) * scales).astype(np.float32)


def steps_of(tensor: Any, dtype: str, name: str) -> Steps | None:
    """Read the steps of a tensor; None of one that is in real numbers, or in whole ones without steps."""
    own = tensor.quantization
    if own is None or own.scale is None or not len(own.scale) or dtype.startswith("float"):
        return None
    if own.details is not None or dtype not in (*IN_STEPS, *ACCUMULATED):
        raise SourceError(f"{name} is quantized to {dtype} in a way that has no translation")
    scales = np.asarray(own.scale, np.float32)
    zeros = np.asarray([0] if own.zeroPoint is None or not len(own.zeroPoint) else own.zeroPoint, np.int64)
    shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
    axis = int(own.quantizedDimension or 0)
    fits = len(scales) == 1 or (0 <= axis < len(shape) and len(scales) == shape[axis])
    if not fits or len(zeros) not in (1, len(scales)) or not (np.isfinite(scales) & (scales > 0)).all():
        raise SourceError(f"the file is damaged: the scales and zero points of {name} do not fit its shape")
    return Steps(dtype, scales, np.broadcast_to(zeros, scales.shape), axis if len(scales) > 1 else 0)
