"""Arrays in the types of 16 bits. NumPy has no bfloat16, so arrays of it are the bits that they consist of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.draw import rounded_to_bfloat16
from fairlap.request.work import Precision


def narrowed(precision: Precision, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Round a float32 array to the precision; in one of 32 bits, and of other types, it stays as it is."""
    if array.dtype != np.float32 or precision not in ("fp16", "bf16"):
        return array
    if precision == "fp16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16)
    return (rounded_to_bfloat16(array).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def narrowed_type(precision: Precision, dtype: str) -> np.dtype[Any]:
    return narrowed(precision, np.zeros(1, dtype)).dtype


def widened(precision: Precision, dtype: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array whose type was ``dtype`` before it was narrowed; one of bfloat16 becomes float32."""
    if is_bfloat16(precision, dtype):
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.copy()


def is_bfloat16(precision: Precision, dtype: str) -> bool:
    return precision == "bf16" and np.dtype(dtype) == np.float32
