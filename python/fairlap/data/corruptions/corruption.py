"""Items of data corrupted: the same every time, in batches of any size, and for all contestants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.corruptions import blur, files, light, noise
from fairlap.data.corruptions.noise import Image
from fairlap.data.corruptions.severities import size_of, strength
from fairlap.models.slices.corruptible import CorruptibleInput
from fairlap.models.slices.typos import mistyped_numbers
from fairlap.request.fields.data.corruption import IMAGE_CORRUPTIONS, TYPOS, Corruption

Array = npt.NDArray[Any]

_OF_IMAGES: Mapping[str, Callable[[Image, Any, np.random.Generator], Image]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "defocus_blur": blur.defocus_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "fog": light.fog,
    "brightness": light.brightness,
    "contrast": light.contrast,
    "saturate": light.saturate,
    "pixelate": files.pixelate,
    "jpeg_compression": files.jpeg_compression,
}
assert set(_OF_IMAGES) == set(IMAGE_CORRUPTIONS)


def corrupted_items(items: Array, first: int, corruption: Corruption, of: CorruptibleInput) -> Array:
    """Corrupt the items of a batch; ``first`` is the number of the first one among all."""
    found = np.empty_like(items)
    for place, item in enumerate(items):
        drawn = corruption.drawn_for(first + place)
        if corruption.name == TYPOS:
            flat = mistyped_numbers(item.reshape(-1), corruption.severity, int(of.high), drawn)
            found[place] = flat.reshape(item.shape)
        else:
            found[place] = _corrupted_image(item, corruption, of, drawn)
    return found


def _corrupted_image(item: Array, corruption: Corruption, of: CorruptibleInput, drawn: np.random.Generator) -> Array:
    image = (item.astype(np.float64) - of.low) / (of.high - of.low)
    image = np.clip(image.transpose(1, 2, 0) if of.channels == "first" else image, 0, 1)
    changed = corrupted_image(image, corruption, drawn)
    changed = changed.transpose(2, 0, 1) if of.channels == "first" else changed
    return (changed * (of.high - of.low) + of.low).astype(item.dtype)


def corrupted_image(image: Image, corruption: Corruption, drawn: np.random.Generator) -> Image:
    """Corrupt one image, height, width and channels from 0 to 1."""
    how = strength(corruption.name, corruption.severity, size_of(*image.shape[:2]))
    return np.clip(_OF_IMAGES[corruption.name](image, how, drawn), 0, 1)
