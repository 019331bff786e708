"""Named arrays in one file, in the safetensors format, so that a worker in any language can read them.

This is our own writer because every array must start on a 64-byte boundary: some frameworks copy an array that does
not, and one aborts. The format: eight bytes with the length of a JSON header, the header, the bytes of the arrays.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError
from fairlap.machine.files.atomic_files import atomic_replacement
from fairlap.models.array_files.npy_map import pieces_of

ALIGNMENT = 64
_LARGEST_HEADER = 100_000_000
_PADDING = "padding/"
_METADATA = "__metadata__"
_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class BadFile(FairlapError):
    """A tensor file is invalid, or cannot be read."""

    code = "E_TENSOR_FILE"


class NotWritten(FairlapError):
    """A full disk or a file system that refuses; neither the arrays nor a contestant is at fault."""

    code = "E_TENSOR_FILE"


def write(path: Path, arrays: Mapping[str, npt.NDArray[Any]], *, private: bool = True) -> None:
    """Write a temporary file and rename it, so that an incomplete file is never visible."""
    header: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        if name == _METADATA or name.startswith(_PADDING):
            raise BadFile(f"the name {name!r} is reserved in this format")
        if array.dtype not in _NAMES:
            raise BadFile(f"{name} is {array.dtype}; only {', '.join(map(str, _NAMES))} can be written")
        begin = _aligned(end)
        if begin > end:  # the format allows no gaps between arrays, so each gap is a separate array of bytes
            header[f"{_PADDING}{end}"] = {"dtype": "U8", "shape": [begin - end], "data_offsets": [end, begin]}
        end = begin + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (_aligned(8 + len(text)) - 8 - len(text))
    try:
        _write_whole(path, len(text).to_bytes(8, "little") + text, arrays, private=private)
    except OSError as error:
        raise NotWritten(f"cannot write {path}: {error.strerror or error}") from None


def _write_whole(path: Path, head: bytes, arrays: Mapping[str, npt.NDArray[Any]], *, private: bool) -> None:
    with atomic_replacement(path, private=private) as beside, beside.open("wb") as file:
        file.write(head)
        written = 0
        for array in arrays.values():
            file.write(b"\0" * (_aligned(written) - written))
            for piece in pieces_of(array) if array.ndim else [array]:  # one that is mapped takes little memory
                file.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
            written = _aligned(written) + array.nbytes


def is_whole(path: Path) -> bool:
    """Whether it exists with its full length. Its arrays are not read."""
    try:
        read(path)
    except BadFile:
        return False
    return True


def read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read-only arrays mapped from the file, each on a 64-byte boundary."""
    try:
        with path.open("rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        raise BadFile(f"cannot read {path}: it is empty") from None
    try:
        start, header = _header(whole)
        _require_no_gaps(header, len(whole) - start)
        return {name: _array(whole, start, entry) for name, entry in header.items() if not name.startswith(_PADDING)}
    except _Damaged as damage:
        why = str(damage)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        why = "an entry of its header lacks the type, the shape or the place of an array"
    raise BadFile(f"{path} is not a safetensors file that fairlap can read: {why}")


class _Damaged(ValueError):
    """The message gives the reason."""


def _header(whole: mmap.mmap) -> tuple[int, dict[str, Any]]:
    length = int.from_bytes(whole[:8], "little")
    if len(whole) < 8 or length > min(_LARGEST_HEADER, len(whole) - 8):
        raise _Damaged("its header is longer than the file")
    try:
        header = json.loads(whole[8 : 8 + length])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _Damaged("its header is not a JSON object")
    header.pop(_METADATA, None)
    return 8 + length, header


def _require_no_gaps(header: Mapping[str, Any], data_bytes: int) -> None:
    """Check what the format requires and what a truncated or overwritten file breaks first."""
    end = 0
    for begins, ends in sorted(tuple(entry["data_offsets"]) for entry in header.values()):
        if begins != end or ends < begins:
            raise _Damaged("its arrays overlap or leave gaps")
        end = ends
    if end != data_bytes:
        raise _Damaged(f"its arrays take {end} bytes, and it has {data_bytes}")


def _array(whole: mmap.mmap, start: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    if entry["dtype"] not in _TYPES:
        raise _Damaged(f"an array is of type {entry['dtype']}; known are {', '.join(_TYPES)}")
    dtype, shape = _TYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if min(shape, default=0) < 0 or end - begin != math.prod(shape) * dtype.itemsize:
        raise _Damaged("an array does not fit its place in the file")
    flat: npt.NDArray[Any] = np.frombuffer(whole, dtype, math.prod(shape), start + begin)
    if flat.ctypes.data % ALIGNMENT and flat.size:  # another program wrote the file
        flat = _moved_to_boundary(flat)
    return flat.reshape(shape)


def _moved_to_boundary(flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    room = np.empty(flat.nbytes + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    moved: npt.NDArray[Any] = room[first : first + flat.nbytes].view(flat.dtype)
    moved[:] = flat
    moved.flags.writeable = False
    return moved


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
