"""What another process can and cannot do with shared memory."""

from __future__ import annotations

import mmap
import os
import sys

import numpy as np
import pytest
from fairlap.scenarios.callables.untrusted.memory import SharedMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is sealed on Linux, where CI runs this")


def test_memory_for_reading_cannot_be_mapped_to_write_nor_written() -> None:
    memory = SharedMemory("test", 100, read_only_elsewhere=True)
    with pytest.raises(PermissionError):
        mmap.mmap(memory.fd, memory.nbytes)
    with pytest.raises(PermissionError):
        os.pwrite(memory.fd, b"1", 0)
    reopened = os.open(f"/proc/self/fd/{memory.fd}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(reopened, memory.nbytes)
    os.close(reopened)
    memory.close()


def test_the_owner_can_write_what_others_read() -> None:
    memory = SharedMemory("test", 100, read_only_elsewhere=True)
    elsewhere = mmap.mmap(memory.fd, memory.nbytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    memory.bytes[:3] = np.frombuffer(b"new", np.uint8)
    assert elsewhere[:3] == b"new"
    memory.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_memory_cannot_be_cut_off_nor_grow(read_only: bool) -> None:
    memory = SharedMemory("test", 100, read_only_elsewhere=read_only)
    for nbytes in (0, 2 * memory.nbytes):
        with pytest.raises(PermissionError):
            os.ftruncate(memory.fd, nbytes)
    memory.close()
