"""The fake device as the stand-ins of frameworks use it. A kernel lasts as long as a test expects."""

from __future__ import annotations

import ctypes
import os
from typing import Any

KERNEL_NS = 30_000

_cuda = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"])
for _name in ("activate_primary_context", "create_stream"):
    getattr(_cuda, f"fake_cuda_{_name}").restype = ctypes.c_uint64
_cuda.fake_cuda_make_current.argtypes = (ctypes.c_uint64,)
_cuda.fake_cuda_create_stream.argtypes = (ctypes.c_uint64, ctypes.c_int)
_cuda.fake_cuda_kernel.argtypes = (ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int64)
_cuda.cuInit(0)
_context = _cuda.fake_cuda_activate_primary_context(0)
_cuda.fake_cuda_make_current(_context)


def new_stream() -> int:
    return int(_cuda.fake_cuda_create_stream(_context, 1))


def launch(name: str, stream: int, lasting_ns: int = KERNEL_NS) -> Any:
    _cuda.fake_cuda_kernel(stream, name.encode(), lasting_ns)
