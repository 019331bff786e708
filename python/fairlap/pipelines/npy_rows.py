"""A .npy file read sample by sample. It is never mapped for long: a file that shrinks under a map ends the process,
while a read just comes back short."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import WrongRequest


class NpyRows:
    """``shape`` counts the samples first."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            header = np.load(path, mmap_mode="r", allow_pickle=False)  # no page of the samples is touched
        except (OSError, ValueError, EOFError) as error:
            raise WrongRequest(f"{path} is no .npy file that can be fed: {error}") from None
        if not isinstance(header, np.memmap):  # several arrays, zipped
            raise WrongRequest(f"{path} is no .npy file that can be fed: it holds several arrays")
        self.dtype, self.shape = header.dtype, header.shape
        self.in_order = bool(header.flags.c_contiguous)
        self._offset: int = header.offset
        self._bytes_each = self.dtype.itemsize * math.prod(self.shape[1:])

    def rows(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        out = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            for place, number in enumerate(numbers):
                self._read(file.fileno(), out[place : place + 1], int(number))
        return out

    def span(self, first: int, count: int) -> npt.NDArray[Any]:
        """Neighbours, in one read."""
        out = np.empty((count, *self.shape[1:]), self.dtype)
        with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            self._read(file.fileno(), out, first)
        return out

    def _read(self, descriptor: int, to: npt.NDArray[Any], first: int) -> None:
        room, offset = to.reshape(-1).view(np.uint8).data, self._offset + first * self._bytes_each
        while room:
            got = os.preadv(descriptor, [room], offset)
            if not got:
                raise WrongRequest(f"{self.path} became shorter while it was fed from")
            room, offset = room[got:], offset + got
