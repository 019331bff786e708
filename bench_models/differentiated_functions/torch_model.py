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

    def __init__(self, value: Callable[..., Any], weights: Arrays, derivative: Callable[..., Any]) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.tensor(array))
        self._names = tuple(weights)
        self._value, self._derivative = value, derivative

    def _items(self, *inputs: Any) -> tuple[Any, ...]:
        weights = {name: getattr(self, name) for name in self._names}
        found: tuple[Any, ...] = self._derivative(lambda point: self._value(point, torch, weights), inputs)
        return found


class AtPoint(_Held):
    def forward(self, point: Any) -> tuple[Any, ...]:
        return self._items(point)


class Along(_Held):
    def forward(self, point: Any, along: Any) -> tuple[Any, ...]:
        return self._items(point, along)


class Implementation(ByTransforms):
    transforms: ClassVar = torch.func

    def build(self, weights: Arrays) -> nn.Module:
        kind = Along if self.mode in ("jvp", "vjp", "hvp", "third") else AtPoint
        return kind(self.function.value, weights, self.derivative()).eval()
