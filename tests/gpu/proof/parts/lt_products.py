"""Products of int8 by cuBLASLt itself, with the workspace that its fast kernels may ask for.

``torch._int_mm`` lets cuBLASLt choose without any workspace, and gets kernels made for Ampere on later devices (pytorch
issue 187094): on an H100 it had 45 % of the device's peak, and its products of bf16 80 %.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

WORKSPACE_BYTES = 64 * 2**20
ALGORITHMS = 4  # of those that its heuristic lists first

# Of cublasLt.h, cublas_api.h and library_types.h.
_COMPUTE_32I, _R_8I, _R_32I = 72, 3, 10
_TRANSA, _TRANSPOSED = 3, 1
_MAX_WORKSPACE_BYTES = 1


class Heuristic(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algo", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class Refused(Exception):
    """A call of cuBLASLt did not succeed."""


def library_of(torch: Any) -> Any:
    """Load the one that PyTorch has loaded already."""
    return ctypes.CDLL(f"libcublasLt.so.{str(torch.version.cuda).partition('.')[0]}")


def products(torch: Any, library: Any, size: int, device: str = "cuda") -> Iterator[Callable[[], Any]]:
    """Yield a product with each of the algorithms, of the same factors into the same sums in int32."""
    one, zero = ctypes.c_int32(1), ctypes.c_int32(0)
    factors = torch.randint(-128, 127, (size, size), device=device, dtype=torch.int8)
    sums = torch.empty((size, size), device=device, dtype=torch.int32)
    workspace = torch.empty(WORKSPACE_BYTES, device=device, dtype=torch.uint8)
    handle, product, preference = (ctypes.c_void_p() for _ in range(3))
    given, taken = ctypes.c_void_p(), ctypes.c_void_p()  # layouts of the factors and of the sums
    call = partial(_call, library)
    call("Create", ctypes.byref(handle))
    call("MatmulDescCreate", ctypes.byref(product), _COMPUTE_32I, _R_32I)
    transposed = ctypes.c_int32(_TRANSPOSED)  # which is the one form that its fast kernels of int8 have
    call("MatmulDescSetAttribute", product, _TRANSA, ctypes.byref(transposed), ctypes.c_size_t(4))
    for layout, kind in ((given, _R_8I), (taken, _R_32I)):
        sizes = ctypes.c_uint64(size), ctypes.c_uint64(size), ctypes.c_int64(size)
        call("MatrixLayoutCreate", ctypes.byref(layout), kind, *sizes)
    call("MatmulPreferenceCreate", ctypes.byref(preference))
    most = ctypes.c_size_t(WORKSPACE_BYTES)
    call("MatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE_BYTES, ctypes.byref(most), ctypes.c_size_t(8))
    found, count = (Heuristic * ALGORITHMS)(), ctypes.c_int()
    layouts = given, given, taken, taken
    call("MatmulAlgoGetHeuristic", handle, product, *layouts, preference, ALGORITHMS, found, ctypes.byref(count))
    read, written, room = (ctypes.c_void_p(each.data_ptr()) for each in (factors, sums, workspace))
    for chosen in [each for each in found[: count.value] if each.state == 0]:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if device == "cuda" else 0)
        operands = ctypes.byref(one), read, given, read, given, ctypes.byref(zero), written, taken, written, taken
        needed = ctypes.c_size_t(chosen.workspace_bytes)
        arguments = handle, product, *operands, ctypes.byref(chosen.algo), room, needed, stream
        yield partial(_kept, (factors, sums, workspace, one, zero), partial(call, "Matmul", *arguments))


def _kept(_held: object, call: Callable[[], None]) -> None:
    call()


def _call(library: Any, function: str, *arguments: Any) -> None:
    status = getattr(library, f"cublasLt{function}")(*arguments)
    if status != 0:
        raise Refused(f"cublasLt{function} gave status {status}")
