"""Read a folder of images with one sub-folder for each class.

Pillow converts images with a palette to RGB, and of images with transparency the colours alone are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.items import CODE, Items, items_with_classes
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.stored_rows import StoredRows

_CHANNELS = {"1": 1, "L": 1, "RGB": 3}
_CONVERTED = {"P": ("RGBA", "RGB"), "PA": ("RGBA", "RGB"), "RGBA": ("RGB",), "LA": ("L",)}
"""The modes on the way to one that is read. A palette with transparent colours goes through RGBA, as Pillow advises."""
_BRIGHTEST = np.float32(255)


def image_items(folder: Path, _labels: str) -> Items:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise InvalidRequest(
            f"the images of {folder} are read with Pillow, which is not installed: pip install 'fairlap[images]'",
            code=CODE,
        ) from None
    classes = _visible(folder)
    if files := [each for each in classes if not each.is_dir()]:
        raise InvalidRequest(
            f"{files[0]} is not in a folder of a class; {folder} has one folder for each class", code=CODE
        )
    images = StoredRows()
    shape: tuple[int, ...] = ()
    labels: list[int] = []
    first: Path | None = None
    for number, each in enumerate(classes):
        files = _visible(each)
        if not files:
            raise InvalidRequest(f"{each} has no image; remove the folder or add images", code=CODE)
        for file in files:
            first = file if first is None else first
            image = _read(Image, file)
            shape = shape or image.shape
            if image.shape != shape:
                raise InvalidRequest(
                    f"{file} has {_size(image.shape)}, and {first} has {_size(shape)}; all images must have one size",
                    code=CODE,
                )
            images.add(image[None])
            labels.append(number)
    if images.is_empty:
        raise InvalidRequest(f"{folder} has no images; it needs one folder for each class", code=CODE)
    return items_with_classes({"image": images.array()}, np.array(labels), folder, [each.name for each in classes])


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))


def _read(library: Any, file: Path) -> npt.NDArray[np.float32]:
    """Channels, height and width, from 0 to 1."""
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "no file"
        raise InvalidRequest(f"{file} is {kind}; the folder of a class has images alone", code=CODE)
    try:
        with library.open(file) as image:
            found = image
            for mode in _CONVERTED.get(image.mode, ()):
                found = found.convert(mode)
            mode, pixels = found.mode, np.asarray(found)
    except (library.UnidentifiedImageError, library.DecompressionBombError, SyntaxError, ValueError, EOFError):
        raise InvalidRequest(
            f"{file} is not an image that can be read; remove it or save it again", code=CODE
        ) from None
    except OSError as error:
        why = error.strerror or "it is damaged"
        raise InvalidRequest(f"{file} cannot be read: {why}; remove it or save it again", code=CODE) from None
    if mode not in _CHANNELS:
        raise InvalidRequest(f"{file} has the mode {mode}; save it as greyscale or RGB of 8 bits", code=CODE)
    if mode == "1":
        return pixels.astype(np.float32)[None]
    scaled = pixels.astype(np.float32) / _BRIGHTEST
    return scaled[None] if mode == "L" else np.ascontiguousarray(scaled.transpose(2, 0, 1))


def _size(shape: tuple[int, ...]) -> str:
    channels, height, width = shape
    return f"{width} by {height} pixels in {'greyscale' if channels == 1 else 'RGB'}"
