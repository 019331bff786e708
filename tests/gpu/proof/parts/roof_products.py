"""The fastest matrix product in each number type, in a separate process: what a roof must not be below.

They are PyTorch's, and of int8 also cuBLASLt's own.

``python -m tests.gpu.proof.parts.roof_products`` reports operations per second, by PyTorch's own events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..json_lines import report, run_program
from . import lt_products
from .framework_work import torch_imported

SIZES = (4096, 8192)
PYTORCH, LT = "PyTorch", "cuBLASLt, with a workspace"
MOST_CALLS, ROUNDS, SECONDS_OF_A_ROUND = 10, 6, 0.1


def products(torch: Any, size: int, device: str = "cuda") -> Iterator[tuple[str, Callable[[], Any]]]:
    """By the name of their number type, each with its sums in the type that frameworks use."""
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    for name, kind, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("fp16", torch.float16, False),
        ("bf16", torch.bfloat16, False),
        ("fp64", torch.float64, False),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a = torch.randn(size, size, device=device, dtype=kind)
        out = torch.empty_like(a)
        yield name, partial(torch.mm, a, a, out=out)
    whole = torch.randint(-128, 127, (size, size), device=device, dtype=torch.int8)
    yield "fp8", partial(_product_of_fp8, torch, size, device)
    yield "int8", partial(torch._int_mm, whole, whole.t())  # the layout for which cuBLAS has its fast kernels


def _product_of_fp8(torch: Any, size: int, device: str) -> Any:
    """Multiply with scales of 1 and sums in float32; the factors are made once."""
    if (size, device) not in _FP8:
        numbers = torch.randn(size, size, device=device).to(torch.float8_e4m3fn)
        _FP8[size, device] = numbers, torch.ones((), device=device)
    numbers, one = _FP8[size, device]
    return torch._scaled_mm(numbers, numbers.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=False)


_FP8: dict[tuple[int, str], tuple[Any, Any]] = {}


def _report_all() -> None:
    torch = torch_imported()
    for size in SIZES:
        for name, call in products(torch, size):
            _report(torch, name, size, PYTORCH, call)
    for size in SIZES:
        try:
            for call in lt_products.products(torch, lt_products.library_of(torch), size):
                _report(torch, "int8", size, LT, call)
        except (OSError, AttributeError, lt_products.Refused) as refused:
            report(number_type="int8", size=size, by=LT, operations_per_s=None, note=str(refused)[:200])


def _report(torch: Any, name: str, size: int, by: str, call: Callable[[], Any]) -> None:
    try:
        call()
        once_s = _seconds(torch, call, 1)
    except Exception as refused:  # no such product on this device
        report(number_type=name, size=size, by=by, operations_per_s=None, note=str(refused)[:200])
        return
    calls = max(1, min(MOST_CALLS, round(SECONDS_OF_A_ROUND / once_s)))
    shortest_s = min(_seconds(torch, call, calls) for _ in range(ROUNDS if calls > 1 else 2))
    report(number_type=name, size=size, by=by, operations_per_s=2.0 * size**3 * calls / shortest_s, note="")


def _seconds(torch: Any, call: Callable[[], Any], calls: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


if __name__ == "__main__":
    run_program(_report_all)
