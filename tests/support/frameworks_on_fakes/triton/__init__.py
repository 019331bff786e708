"""What the documentation's example uses of Triton: a kernel of the function's name on PyTorch's current stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fake_device import launch


class jit:  # noqa: N801  (Triton's name)
    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        assert all(size > 0 for size in grid)
        return lambda *_arguments, **_constants: launch(self._name, torch.cuda.current_stream().cuda_stream)


def cdiv(a: int, b: int) -> int:
    return -(-a // b)
