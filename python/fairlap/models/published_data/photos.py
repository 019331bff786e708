"""Encoded images on disk with what is known of each, which are decoded one by one when they are asked for."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairlap.models.array_files.stored_rows import stored
from fairlap.models.published_data.published_images import Array, PublishedImages, refuse

GREY = 114  # of what a photo leaves of its square, as detectors are trained with

Encoded = tuple[str, bytes]  # what to call it in an error, and the content


class ImageSize(NamedTuple):
    """What a model takes, in pixels."""

    channels: int
    height: int
    width: int

    @property
    def shown(self) -> str:
        return f"{self.width} by {self.height} pixels {'in grey' if self.channels == 1 else 'in colour'}"


@dataclass(frozen=True)
class Photos:
    """``fits`` keeps the shape of a photo, in the middle of a grey square; otherwise it is stretched to a size."""

    encoded: Callable[[], Iterable[Encoded]]
    labels: Array  # for each photo the number of its class, or rows of boxes
    classes: tuple[str, ...] = ()
    held_out: Array | None = None  # whether each is of the test part; None where there is none
    fits: bool = False

    def images(self, size: ImageSize | None = None) -> Array:
        """Decode all to bytes: items, channels, height and width. Without a size all must have one."""
        return stored(self.decoded(size))

    def test_part(self) -> Photos:
        if self.held_out is None:
            return self
        held = self.held_out

        def encoded() -> Iterator[Encoded]:
            return (each for each, is_held in zip(self.encoded(), held, strict=True) if is_held)

        return Photos(encoded, self.labels[held], self.classes, fits=self.fits)

    def published(self) -> PublishedImages:
        return PublishedImages(self.images(), self.labels, self.classes, self.held_out)

    def decoded(self, size: ImageSize | None) -> Iterator[Array]:
        first, one_size = "", size
        for name, content in self.encoded():
            pixels = _pixels(name, content, size, fits=self.fits)
            own = ImageSize(*pixels.shape)
            first, one_size = first or name, one_size or own
            if own != one_size:
                raise refuse(
                    Path(name),
                    f"it has {own.shown}, and {first} has {one_size.shown}; give images of one size, or where a model "
                    "takes them its size, as --shapes INPUT:8x3x224x224",
                )
            yield pixels[None]


def fitted_size(width: int, height: int, size: ImageSize) -> tuple[int, int, int, int]:
    """Compute the left, top, width and height of a photo in the middle of its square."""
    scale = min(size.width / width, size.height / height)
    wide, high = (max(1, round(scale * side)) for side in (width, height))
    return (size.width - wide) // 2, (size.height - high) // 2, wide, high


def require_pillow(path: Path) -> None:
    if find_spec("PIL") is None:
        raise refuse(path, "images are read with Pillow, which is not installed: pip install 'fairlap[images]'")


def _pixels(name: str, content: bytes, size: ImageSize | None, *, fits: bool) -> Array:
    """Without a size, greyscale has one channel and everything else becomes RGB."""
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(content)) as image:
            if size is None:
                mode = "L" if image.getbands() == ("L",) else "RGB"
                pixels = np.asarray(image.convert(mode))
            else:
                pixels = _resized(image.convert("L" if size.channels == 1 else "RGB"), size, fits=fits)
    except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError):
        raise refuse(Path(name), "it is not an image that can be read") from None
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _resized(image: Any, size: ImageSize, *, fits: bool) -> Array:
    """Resize bilinearly with antialiasing, as input pipelines do here."""
    from PIL import Image

    if not fits:
        return np.asarray(image.resize((size.width, size.height), Image.Resampling.BILINEAR))
    wide, high = image.size
    left, top, width, height = fitted_size(wide, high, size)
    square = Image.new(image.mode, (size.width, size.height), GREY if size.channels == 1 else (GREY,) * 3)
    square.paste(image.resize((width, height), Image.Resampling.BILINEAR), (left, top))
    return np.asarray(square)
