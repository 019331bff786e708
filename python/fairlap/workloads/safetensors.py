"""Named arrays in one file, in the safetensors format, so that a worker in any language can read them.

Written by ourselves because every array must start on a 64-byte boundary: some frameworks copy what does not,
and one aborts. The format: eight bytes with the length of a JSON header, the header, the bytes of the arrays.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError

ALIGNMENT = 64
_LARGEST_HEADER = 100_000_000
_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class BadFile(FairlapError):
    """A file does not hold what its format promises."""


def write(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write beside and rename, so that nobody ever sees half a file."""
    header: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        if array.dtype not in _NAMES:
            raise BadFile(f"{name} is {array.dtype}; only float32, float64, int32 and int64 can be written")
        begin = _aligned(end)
        if begin > end:  # the format allows no hole between arrays, so each hole is an array of bytes of its own
            header[f"padding/{end}"] = {"dtype": "U8", "shape": [begin - end], "data_offsets": [end, begin]}
        end = begin + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (_aligned(8 + len(text)) - 8 - len(text))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            written = 0
            for array in arrays.values():
                file.write(b"\0" * (_aligned(written) - written))
                file.write(np.ascontiguousarray(array).data)
                written = _aligned(written) + array.nbytes
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read-only arrays over the file's own pages."""
    try:
        with path.open("rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read: {error}") from None
    try:
        length = int.from_bytes(whole[:8], "little")
        if len(whole) < 8 or length > min(_LARGEST_HEADER, len(whole) - 8):
            raise ValueError("its header is longer than the file")
        header = json.loads(whole[8 : 8 + length])
        return {
            name: _array(whole, 8 + length, entry)
            for name, entry in header.items()
            if name != "__metadata__" and not name.startswith("padding/")
        }
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise BadFile(f"{path} is not a safetensors file that fairlap can read: {error}") from None


def _array(whole: mmap.mmap, start: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    dtype, shape = _TYPES[entry["dtype"]], tuple(int(size) for size in entry["shape"])
    begin, end = (int(offset) for offset in entry["data_offsets"])
    count = math.prod(shape)
    if min(shape, default=1) < 0 or begin < 0 or end - begin != count * dtype.itemsize or start + end > len(whole):
        raise ValueError("an array does not fit its place in the file")
    flat: npt.NDArray[Any] = np.frombuffer(whole, dtype, count, start + begin)
    return flat.reshape(shape)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
