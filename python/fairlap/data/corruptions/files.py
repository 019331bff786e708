"""What saving and sending does to an image: fewer pixels, and compression. Both work on bytes, by Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from fairlap.data.corruptions.noise import Image

if TYPE_CHECKING:
    import PIL.Image

_BRIGHTEST = 255


def pixelate(image: Image, share: float, _: np.random.Generator) -> Image:
    from PIL.Image import Resampling

    height, width = image.shape[:2]
    smaller = _picture(image).resize((max(1, int(width * share)), max(1, int(height * share))), Resampling.BOX)
    return _pixels(smaller.resize((width, height), Resampling.BOX), image)


def jpeg_compression(image: Image, quality: int, _: np.random.Generator) -> Image:
    import PIL.Image

    packed = io.BytesIO()
    _picture(image).convert("RGB").save(packed, "JPEG", quality=quality)
    with PIL.Image.open(packed) as found:
        return _pixels(found if image.shape[2] > 1 else found.convert("L"), image)


def _picture(image: Image) -> PIL.Image.Image:
    import PIL.Image

    pixels = np.round(np.clip(image, 0, 1) * _BRIGHTEST).astype(np.uint8)
    return PIL.Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _pixels(picture: PIL.Image.Image, like: Image) -> Image:
    return np.asarray(picture, np.float64).reshape(like.shape) / _BRIGHTEST
