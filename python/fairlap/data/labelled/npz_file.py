"""Read a .npz file: the array ``labels``, and one array for each input of the model.

Labels of a whole-number type are the numbers of classes, of which an item may have several, as a text has one for each
token; texts are their names, and other numbers are values. Images whose pixels are bytes are scaled to 0..1.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.items import CODE, Items, items_with_classes, items_with_values
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.array_files.numpy_files import npy_header, why_not_read
from fairlap.models.array_files.stored_rows import IN_MEMORY_BYTES, stored
from fairlap.models.spec import LABELS

Array = npt.NDArray[Any]

_NUMBERS, _WHOLE, _TEXT = "biuf", "biu", "U"
_IMAGE_AXES = 3
_BRIGHTEST = 255.0
_MOST_CLASSES = 2**20
_PIECE_BYTES = 2**24
_UNREADABLE = (ValueError, EOFError, BadZipFile, AttributeError, TypeError, RuntimeError, zlib.error)


def npz_items(path: Path, _labels: str) -> Items:
    arrays = _read(path)
    if LABELS not in arrays:
        raise InvalidRequest(f"{path} has no array {LABELS!r}; it has {', '.join(arrays) or 'none'}", code=CODE)
    labels = arrays.pop(LABELS)
    if not arrays:
        raise InvalidRequest(f"{path} has {LABELS!r} alone; the inputs are needed too", code=CODE)
    assert isinstance(labels, np.ndarray)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 and (labels.dtype.kind not in _WHOLE or 0 in labels.shape[1:] or not labels.ndim):
        raise InvalidRequest(
            f"{path}: {LABELS} has the shape {list(labels.shape)}; give one for each item, or classes", code=CODE
        )
    for name, array in arrays.items():
        if len(array.shape) < 2 or array.dtype.kind not in _NUMBERS or 0 in array.shape[1:]:
            found = f"{array.dtype} of the shape {list(array.shape)}"
            raise InvalidRequest(f"{path}: {name} has {found}; give numbers, with a row for each item", code=CODE)
        if array.shape[0] != len(labels):
            raise InvalidRequest(
                f"{path}: {name} has {array.shape[0]:,} items, {LABELS} has {len(labels):,}", code=CODE
            )
    try:
        inputs = {name: stored(map(_input, _pieces(array))) for name, array in arrays.items()}
    except _UNREADABLE:
        raise _not_read(path) from None
    return _labelled(path, inputs, labels)


def _labelled(path: Path, inputs: dict[str, Array], labels: Array) -> Items:
    if labels.dtype.kind == _TEXT:
        return items_with_classes(inputs, labels, path)
    if labels.dtype.kind not in _NUMBERS:
        raise InvalidRequest(f"{path}: {LABELS} has the type {labels.dtype}; save it as numbers or text", code=CODE)
    if labels.dtype.kind not in _WHOLE or not len(labels):
        return items_with_values(inputs, labels, path)
    found = np.unique(labels)
    if labels.ndim > 1 and 0 <= found[0] <= found[-1] < _MOST_CLASSES:  # of tokens of a text, which need not have all
        names = tuple(map(str, range(int(found[-1]) + 1)))
        return items_with_classes(inputs, labels, path, names)
    if not np.array_equal(found, np.arange(len(found))):
        missing = -1 if found[0] < 0 else next(number for number in range(len(found) + 1) if number not in found)
        problem = f"{found[0]} is none" if missing < 0 else f"{missing} has no item"
        raise InvalidRequest(
            f"{path}: {LABELS} from {found[0]} to {found[-1]} are out of range: classes are numbered from 0 on, and "
            f"{problem}",
            code=CODE,
        )
    return items_with_classes(inputs, labels, path, [str(number) for number in found])


@dataclass(frozen=True)
class _Member:
    """A large array that is read row by row."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def pieces(self) -> Iterator[Array]:
        of_row = self.dtype.itemsize * math.prod(self.shape[1:])
        rows = max(1, _PIECE_BYTES // max(1, of_row))
        with ZipFile(self.file) as archive, archive.open(self.name) as file:
            npy_header(file)
            for first in range(0, max(1, self.shape[0]), rows):
                count = min(rows, self.shape[0] - first)
                read = file.read(count * of_row)
                yield np.frombuffer(read, self.dtype, count * math.prod(self.shape[1:])).reshape(count, *self.shape[1:])


def _pieces(array: Array | _Member) -> Iterator[Array]:
    return array.pieces() if isinstance(array, _Member) else pieces_of(array)


def _read(path: Path) -> dict[str, Array | _Member]:
    """Read the arrays; a large one but the labels is read later, in pieces."""
    found: dict[str, Any] = {}
    try:
        if why := why_not_read(path, mapped=True):
            raise InvalidRequest(f"{path} cannot be read: {why}", code=CODE)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # which leaves a damaged one open
            for name in archive.files:
                large = None if name == LABELS else _large_member(path, f"{name}.npy")
                found[name] = archive[name] if large is None else large
    except InvalidRequest:
        raise
    except _UNREADABLE:
        raise _not_read(path) from None
    if any(not isinstance(array, np.ndarray | _Member) for array in found.values()):  # a member that is no array
        raise _not_read(path)
    return found


def _large_member(path: Path, name: str) -> _Member | None:
    """None for a small array, and for one that is not stored row by row or not of numbers, which NumPy reads."""
    with ZipFile(path) as archive:
        if name not in archive.namelist() or archive.getinfo(name).file_size <= IN_MEMORY_BYTES:
            return None
        with archive.open(name) as file:
            shape, by_column, dtype = npy_header(file)
    if by_column or dtype.kind not in _NUMBERS or not shape:
        return None
    return _Member(path, name, shape, dtype)


def _not_read(path: Path) -> InvalidRequest:
    return InvalidRequest(f"{path} cannot be read as .npz; save arrays of numbers and text with numpy.savez", code=CODE)


def _input(array: Array) -> Array:
    if array.ndim >= _IMAGE_AXES:
        brightest = _BRIGHTEST if array.dtype == np.uint8 else 1.0
        return (array / brightest).astype(np.float32)
    return array.astype(np.float64)
