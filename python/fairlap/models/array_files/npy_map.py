"""A .npy file as an array that is read where it is used, and whose pages are given back."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_PIECE_BYTES = 2**24


def mapped(path: Path) -> npt.NDArray[Any]:
    """Map the array of a file. Raises ValueError, or what ``numpy.load`` raises, where it holds no single one."""
    found = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(found, np.ndarray):
        raise ValueError("it holds several arrays, not one")
    return np.asarray(found)


def release(array: npt.NDArray[Any]) -> None:
    """Give back the memory of what was read of an array that is mapped; the kernel keeps what it can of the file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def pieces_of(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Its rows, some megabytes at a time; at least one piece."""
    rows = max(1, _PIECE_BYTES // max(1, array[:1].nbytes))
    for first in range(0, max(1, len(array)), rows):
        yield array[first : first + rows]
        release(array)
