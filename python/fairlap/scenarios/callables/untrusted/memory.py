"""Memory that two processes share and only one of them can write, or whose size the other cannot change.

https://man7.org/linux/man-pages/man2/fcntl.2.html (file sealing)
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Any

import numpy as np

from fairlap.errors import NotAvailable

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 1, 2, 4, 16
PAGE_BYTES = mmap.PAGESIZE


class SharedMemory:
    """Of this process, which can write it. ``bytes`` is all of it; ``fd`` is for the other process.

    With ``read_only_elsewhere`` no later mapping, and no descriptor however it was opened, can write it. Its size is
    fixed, because memory that another process cuts off ends the one that reads it.
    """

    def __init__(self, name: str, nbytes: int, *, read_only_elsewhere: bool) -> None:
        self.nbytes = -(-nbytes // PAGE_BYTES) * PAGE_BYTES
        try:
            self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except (AttributeError, OSError) as error:
            raise NotAvailable(f"this system cannot share memory that is sealed: {error}") from None
        try:
            os.posix_fallocate(self.fd, 0, self.nbytes)  # no later write can fail for want of memory
            self._map = mmap.mmap(self.fd, self.nbytes)
            seals = _SEAL_SHRINK | _SEAL_GROW | (_SEAL_FUTURE_WRITE if read_only_elsewhere else 0)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals | _SEAL_SEAL)
        except OSError as error:
            os.close(self.fd)
            raise NotAvailable(f"{self.nbytes:,} bytes cannot be shared and sealed: {error.strerror}") from None
        self.bytes: Bytes = np.frombuffer(self._map, dtype=np.uint8)

    def close(self) -> None:
        """Close the descriptor. The memory lasts as long as arrays refer to it."""
        os.close(self.fd)
