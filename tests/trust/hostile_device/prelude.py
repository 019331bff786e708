"""What a callable on the fake device needs: its driver, a stream, and copies, which are all that the fake computes.

It is put before the text of each callable, since one that is not trusted is a single file.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

ROWS, COLUMNS = 8, 64
NBYTES = ROWS * COLUMNS * 4
HALF = NBYTES // 2
LONG_NS = 10**12

cuda = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"])
address_t, pointer_t = ctypes.c_uint64, ctypes.c_void_p
cuda.cuMemcpyDtoDAsync_v2.argtypes = (address_t, address_t, ctypes.c_size_t, pointer_t)
cuda.cuMemAlloc_v2.argtypes = (pointer_t, ctypes.c_size_t)
cuda.cuStreamSynchronize.argtypes = (pointer_t,)
cuda.cuCtxPushCurrent_v2.argtypes = (pointer_t,)
cuda.fake_cuda_kernel.argtypes = (address_t, ctypes.c_char_p, ctypes.c_int64)


def checked(code: int) -> None:
    if code:
        raise RuntimeError(f"CUDA error {code}")


context = pointer_t()
checked(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
checked(cuda.cuCtxPushCurrent_v2(context))


def new_stream() -> Any:
    made = pointer_t()
    checked(cuda.cuStreamCreate(ctypes.byref(made), 1))
    return made


def memory(nbytes: int) -> int:
    made = address_t()
    checked(cuda.cuMemAlloc_v2(ctypes.byref(made), nbytes))
    return made.value


class Array:
    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (ROWS, COLUMNS),
            "typestr": "<f4",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def address_of(array: Any) -> int:
    found: int = array.__cuda_array_interface__["data"][0]
    return found


def copy(to: int, source: int, nbytes: int, stream: Any) -> None:
    checked(cuda.cuMemcpyDtoDAsync_v2(to, source, nbytes, stream))


def swapped(x: Any, into: int, stream: Any) -> Array:
    """Enqueue the right answer: the lower half above the upper one."""
    copy(into, address_of(x) + HALF, HALF, stream)
    copy(into + HALF, address_of(x), HALF, stream)
    return Array(into)


stream = new_stream()
answer = memory(NBYTES)
