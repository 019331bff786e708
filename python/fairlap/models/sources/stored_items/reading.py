"""Read all items one after the other for the reference, in the order in which they are numbered."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.models.sources.stored_items.decoding import decoded
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.reference_items import Array, Collected, ReferenceItems
from fairlap.models.sources.stored_items.stored_items import StoredItems
from fairlap.models.sources.stored_items.tar_samples import tar_samples
from fairlap.request.fields.data.stored_data import CODE

_MODES = ("L", "RGB")  # that every decoder here turns into the same RGB
_FORMATS = ("JPEG", "PNG")


def reference_items(of: StoredItems) -> ReferenceItems:
    """Read them, and raise InvalidRequest for an item that cannot be decoded."""
    collected = Collected(of)
    if of.stored_as == "rows":
        rows, labels = (np.load(file, mmap_mode="r") for file in of.files)
        for row, label in zip(rows, labels.tolist(), strict=True):
            collected.add(np.asarray(row), label)
        return collected.reference()
    height, width = of.height_and_width
    for name, encoded, label in _encoded(of):
        _require_plain(name, encoded)
        rough = _resized_roughly(encoded, height, width) if collected.wants_rough else None
        collected.add(decoded(encoded, height, width, of.dtype), label, rough)
    return collected.reference()


def _encoded(of: StoredItems) -> Iterator[tuple[str, bytes, int]]:
    if of.stored_as == "images":
        for file, label in zip(of.files, of.labels, strict=True):
            yield file, Path(file).read_bytes(), label
        return
    [path] = of.files
    samples = tar_samples(path) if of.stored_as == "tar" else parquet_samples(path, of.columns, of.batch)
    for number, (image, label) in enumerate(samples):
        yield f"item {number} of {path}", image, label


def _require_plain(name: str, encoded: bytes) -> None:
    library = _pillow()
    try:
        with library.open(io.BytesIO(encoded)) as image:
            mode, format_ = image.mode, image.format
            image.load()
    except (library.DecompressionBombError, SyntaxError, ValueError, EOFError, OSError) as error:
        raise InvalidRequest(f"{name} cannot be decoded: {error}; remove it or save it again", code=CODE) from None
    if mode not in _MODES or format_ not in _FORMATS:
        raise InvalidRequest(
            f"{name} is {format_} of the mode {mode}; save it as JPEG or PNG, greyscale or RGB of 8 bits", code=CODE
        )


def _resized_roughly(encoded: bytes, height: int, width: int) -> Array:
    library = _pillow()
    with library.open(io.BytesIO(encoded)) as image:
        return np.asarray(image.convert("RGB").resize((width, height), library.Resampling.NEAREST))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise InvalidRequest(
            "images are checked with Pillow, which is not installed: pip install 'fairlap[images]'", code=CODE
        ) from None
    return Image
