"""Read a .npy file sample by sample, without mapping it: a mapped file that shrinks would crash the process."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine.feeding.feeder import require_readable_npy
from fairlap.engine.feeding.npy_header import npy_header
from fairlap.errors import InvalidRequest

_MAGIC = b"\x93NUMPY"
_ZIP = b"PK"
_FEEDER_ADVICE = "; give the file as raw samples if their bytes are right"


class NpyRows:
    """``shape`` counts the samples first."""

    def __init__(self, path: str | Path) -> None:
        """NumPy accepts more than the engine can feed."""
        self.path = path
        try:
            _require_npy(path)
            require_readable_npy(path)
            header = npy_header(str(path))
        except OSError as error:
            raise InvalidRequest(f"cannot read {path}: {error.strerror}", code="E_DATA") from None
        except ValueError as error:
            what = str(error).partition("\n")[0].replace(_FEEDER_ADVICE, "; save it as another type")
            raise InvalidRequest(what if str(path) in what else f"{path}: {what}", code="E_DATA") from None
        self.dtype, self.shape = np.dtype(header.kind), header.shape
        self._offset = header.offset
        self.bytes_each = self.dtype.itemsize * math.prod(self.shape[1:])

    def rows(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        out = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            for place, number in enumerate(numbers):
                self._read(file.fileno(), out[place : place + 1], int(number))
        return out

    def span(self, first: int, count: int) -> npt.NDArray[Any]:
        """Consecutive samples, in one read."""
        out = np.empty((count, *self.shape[1:]), self.dtype)
        with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            self._read(file.fileno(), out, first)
        return out

    def _read(self, descriptor: int, to: npt.NDArray[Any], first: int) -> None:
        room, offset = to.reshape(-1).view(np.uint8).data, self._offset + first * self.bytes_each
        while room:
            got = os.preadv(descriptor, [room], offset)
            if not got:
                raise InvalidRequest(f"{self.path} became shorter while it was read", code="E_DATA_CHANGED")
            room, offset = room[got:], offset + got


def _require_npy(path: str | Path) -> None:
    with open(path, "rb") as file:  # noqa: PTH123
        begins = file.read(len(_MAGIC))
    if begins.startswith(_ZIP):
        message = f"{path} is a zip of several arrays, not a .npy file; save each array with numpy.save"
        raise InvalidRequest(message, code="E_DATA")
    if begins != _MAGIC:
        raise InvalidRequest(f"{path} is not a .npy file; save an array with numpy.save", code="E_DATA")
