"""The kernel's page cache of files: drop what it holds of them, and see how much is left.

``posix_fadvise`` drops pages that are neither dirty nor mapped by a process, and says nothing of those that stay;
``mincore`` shows which are there. Of a file that belongs to another user and cannot be written, the kernel says that
every page is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np


def evict(files: Iterable[str]) -> None:
    """Drop their pages, as far as the kernel does."""
    for file in files:
        with _opened(file) as descriptor:
            with contextlib.suppress(OSError):  # a file system that is read-only has nothing dirty
                os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def resident_share(files: Iterable[str]) -> float:
    """Give the share of their pages that are in memory; 1 for files without any."""
    resident = pages = 0
    for file in files:
        with _opened(file) as descriptor:
            found = _pages(descriptor)
        resident, pages = resident + int(np.count_nonzero(found & 1)), pages + len(found)
    return resident / pages if pages else 1.0


def _pages(descriptor: int) -> np.ndarray:
    """Give a byte for each page, whose lowest bit is set where it is in memory."""
    size = os.fstat(descriptor).st_size
    found = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    if size:
        with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as mapped:  # maps and reads nothing
            view = np.frombuffer(mapped, np.uint8)
            failed = _mincore()(view.ctypes.data, size, found.ctypes.data)
            error = ctypes.get_errno()
            del view  # or the map could not be closed
        if failed:
            raise OSError(error, os.strerror(error))
    return found


@cache
def _mincore() -> Callable[[int, int, int], int]:
    library: Any = ctypes.CDLL(None, use_errno=True).mincore
    library.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    function: Callable[[int, int, int], int] = library
    return function


@contextlib.contextmanager
def _opened(file: str) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
