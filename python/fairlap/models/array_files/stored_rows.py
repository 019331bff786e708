"""Arrays that are made row by row: small ones in memory, and larger ones in a file that they are mapped from.

The file has no name, so nothing is left of it when the array is no longer used.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.array_files.npy_map import pieces_of

Array = npt.NDArray[Any]
Places = npt.NDArray[np.int64]

IN_MEMORY_BYTES = 2**26  # of one array
_PICKED_BYTES = 2**24  # at once

_files: WeakKeyDictionary[mmap.mmap, IO[bytes]] = WeakKeyDictionary()  # of the maps of whole arrays


class StoredRows:
    """Takes rows a piece at a time, and gives them back as one array."""

    def __init__(self) -> None:
        self._pieces: list[Array] = []
        self._bytes = 0  # of the pieces
        self._file: IO[bytes] | None = None

    def add(self, rows: Array) -> None:
        self._pieces.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > IN_MEMORY_BYTES:
            self._write()

    @property
    def is_empty(self) -> bool:
        return self._file is None and not self._pieces

    def array(self) -> Array:
        """All rows, of which there is one piece at least."""
        if self._file is None:
            return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
        dtype, shape = self._pieces[-1].dtype, self._pieces[-1].shape[1:]
        self._write()
        self._file.flush()
        whole = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        _files[whole] = self._file
        return np.frombuffer(whole, dtype).reshape(-1, *shape)

    def _write(self) -> None:
        if self._file is None:
            self._file = _unnamed_file()
        for piece in self._pieces:
            self._file.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
        self._pieces, self._bytes = [self._pieces[-1][:0]], 0


def _unnamed_file() -> IO[bytes]:
    """Open it in the cache; a process in a sandbox may write to its temporary folder alone."""
    try:
        make_cache_folder(work_cache())
        return tempfile.TemporaryFile(dir=work_cache())
    except PermissionError:
        return tempfile.TemporaryFile()


def stored(pieces: Iterable[Array]) -> Array:
    rows = StoredRows()
    for piece in pieces:
        rows.add(piece)
    return rows.array()


def changed_rows(array: Array, change: Callable[[Array], Array]) -> Array:
    """Apply a function of rows to all of them."""
    return stored(change(piece) for piece in pieces_of(array))


def picked_pieces(array: Array, places: Places) -> Iterator[Array]:
    """Copy the rows at these places, in their order, some megabytes at a time; at least one piece."""
    size = max(1, _PICKED_BYTES // max(1, array[:1].nbytes))
    file = _file_of(array)
    for first in range(0, max(1, len(places)), size):
        some = places[first : first + size]
        yield array[some] if file is None else _read_rows(file, array, some)


def _file_of(array: Array) -> IO[bytes] | None:
    """Find the file of an array that is mapped from one here; None for another, and for a part of one."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    is_whole = isinstance(base, mmap.mmap) and array.nbytes == len(base) and array.flags.c_contiguous
    return _files.get(base) if is_whole else None


def _read_rows(file: IO[bytes], array: Array, places: Places) -> Array:
    """Read, since around each row the kernel maps up to two megabytes of a file, which count as memory."""
    found = np.empty((len(places), *array.shape[1:]), array.dtype)
    room, size = found.reshape(-1).view(np.uint8).data, array[:1].nbytes
    for number, place in enumerate(places.tolist()):
        os.preadv(file.fileno(), [room[number * size : (number + 1) * size]], place * size)
    return found


def picked_rows(array: Array, places: Places, change: Callable[[Array], Array] = lambda rows: rows) -> Array:
    return stored(change(piece) for piece in picked_pieces(array, places))


def mean_and_deviation(array: Array, places: Places) -> tuple[Array, Array]:
    """Of each column, over the rows at these places, to the last bit as NumPy computes them of all rows at once.

    NumPy adds row after row where there are several columns; a single one is summed in pairs, so it is in memory.
    """
    columns = math.prod(array.shape[1:])
    if columns == 1 or 8 * columns * len(places) <= IN_MEMORY_BYTES:
        known = array[places].astype(np.float64)
        return known.mean(axis=0), known.std(axis=0)

    def known_pieces() -> Iterator[Array]:
        return (piece.astype(np.float64) for piece in picked_pieces(array, places))

    mean = _summed(known_pieces()) / len(places)
    return mean, np.sqrt(_summed(np.square(piece - mean) for piece in known_pieces()) / len(places))


def _summed(pieces: Iterable[Array]) -> Array:
    total: Array | None = None
    for piece in pieces:
        total = np.add.reduce(piece if total is None else np.concatenate([total[None], piece]), axis=0)
    assert total is not None
    return total
