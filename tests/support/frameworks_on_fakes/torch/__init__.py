"""What the documentation's examples use of PyTorch: every operator is a kernel on the current stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fake_device import launch

from . import cuda


class Tensor:
    pass


class device:  # noqa: N801  (PyTorch's name)
    def __init__(self, index: int) -> None:
        self.index = index


def rand(*_size: int, device: str) -> Tensor:
    return Tensor()


def _operator(name: str) -> Any:
    def run(*_arguments: Any, out: Any = None) -> Any:
        launch(name, cuda.current_stream().cuda_stream)
        return out or Tensor()

    return run


add = _operator("add")
ops = SimpleNamespace(aten=SimpleNamespace(addmm=_operator("addmm"), mm=_operator("mm"), add=add))
