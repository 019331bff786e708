"""What a .npy or .npz file would take in memory, by the headers of its arrays: a small file can unpack to many GB."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from fairlap.machine.available_memory import available_memory_bytes

_MOST_HEADER_BYTES = 2**16
_MOST_MEMBERS = 10_000
_MOST_TIMES_THE_FILE = 100
_SMALL_BYTES = 2**28  # zeros shrink to a thousandth, and small arrays of them are common
_SHARE_OF_MEMORY = 0.5  # they are copied, and converted, at least once


def why_not_read(path: Path, *, mapped: bool = False) -> str:
    """Explain why the arrays of a file are not to be read, or return an empty text.

    It is empty where they may be, or where NumPy itself says what is wrong. Raises OSError.
    An array that is ``mapped`` is read in pieces, so it may be larger than the memory that is free.
    """
    size = path.stat().st_size
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                announced, held = _announced_bytes(file), size
            members = 1
        else:
            with zipfile.ZipFile(path) as archive:
                found = archive.infolist()
                members, announced, held = len(found), 0, sum(each.file_size for each in found)
                for member in found[: _MOST_MEMBERS + 1]:
                    with archive.open(member) as file:
                        announced += _announced_bytes(file)
    except OSError:
        raise
    except (ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error, TokenError):
        return ""
    if members > _MOST_MEMBERS:
        return f"it holds {members:,} arrays"
    if announced > held:
        return f"its headers announce {announced:,} bytes, and it holds {held:,}"
    if announced > max(_SMALL_BYTES, _MOST_TIMES_THE_FILE * size):
        return f"it grows from {size:,} to {announced:,} bytes when it is read"
    free = None if mapped else available_memory_bytes()
    if free is not None and announced > _SHARE_OF_MEMORY * free:
        return f"its arrays take {announced:,} bytes, and {free:,} of memory are free"
    return ""


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, whether columns are stored one after the other, and the type; what follows are the numbers."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, kind = read(file, max_header_size=_MOST_HEADER_BYTES)
    return tuple(int(size) for size in shape), bool(by_column), kind


def _announced_bytes(file: IO[bytes]) -> int:
    """Of one array; 0 for one of objects, or without a header, which NumPy refuses."""
    shape, _, kind = npy_header(file)
    return 0 if kind.hasobject else int(kind.itemsize) * math.prod(shape)
