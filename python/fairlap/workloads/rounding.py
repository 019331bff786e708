"""What is left of a float32 in bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def rounded_to_bfloat16(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """To the nearest, ties to even, as every framework rounds."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)
