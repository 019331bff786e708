"""Decode and resize an image as every pipeline must: to RGB, bilinear with antialiasing, as Pillow does."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[Any]

_BRIGHTEST = np.float32(255)


def decoded(encoded: bytes | str, height: int, width: int, dtype: str) -> Pixels:
    """With Pillow, which leaves the interpreter to other threads meanwhile. ``encoded`` is the content or a path."""
    from PIL import Image

    with Image.open(encoded if isinstance(encoded, str) else io.BytesIO(encoded)) as image:
        pixels = np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))
    return pixels if dtype == "uint8" else pixels.astype(np.float32) / _BRIGHTEST
