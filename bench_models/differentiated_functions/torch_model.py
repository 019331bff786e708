"""Derivatives by ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.func
from fairlap.bench_models.differentiated_functions.transforms import ByTransforms
from fairlap.models.arrays import Arrays
from torch import nn


class _Held(nn.Module):
    """Its weights, and the derivative of a point."""

    def __init__(self, weights: Arrays, derivative: Callable[..., tuple[Any, ...]]) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.tensor(array))
        self._names = tuple(weights)
        self._derivative = derivative

    def _items(self, *inputs: Any) -> tuple[Any, ...]:
        weights = {name: getattr(self, name) for name in self._names}
        return self._derivative(weights, inputs)


class AtPoint(_Held):
    def forward(self, point: Any) -> tuple[Any, ...]:
        return self._items(point)


class Along(_Held):
    def forward(self, point: Any, along: Any) -> tuple[Any, ...]:
        return self._items(point, along)


class ToTarget(_Held):
    def forward(self, point: Any, target: Any) -> tuple[Any, ...]:
        return self._items(point, target)


class Implementation(ByTransforms):
    transforms: ClassVar = torch.func
    stop_gradient: ClassVar = staticmethod(torch.Tensor.detach)

    def build(self, weights: Arrays) -> nn.Module:
        takes_along = self.mode in ("jvp", "vjp", "hvp", "third")
        kind = Along if takes_along else ToTarget if self.mode == "per-sample" else AtPoint
        return kind(weights, self.derivative(torch)).eval()

    def solved(self, arrays: Any, matrix: Any, right_side: Any) -> Any:
        """Solve in two steps for a product with the Jacobian under ``torch.compile``.

        PyTorch 2.13 compiles the forward derivative of ``solve`` for single points alone. It compiles that of the two
        steps, which take some percent longer otherwise, but to wrong values where a Jacobian is whole.
        """
        if self.mode != "jvp" or not torch.compiler.is_compiling():
            return super().solved(arrays, matrix, right_side)
        factors, pivots = torch.linalg.lu_factor(matrix)
        return torch.linalg.lu_solve(factors, pivots, right_side)
