"""Derivatives by ``torch.func``: of a single point as they are, of several under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from fairlap.bench_models.differentiated_functions.function import FORWARD, REVERSE, OfFunction
from fairlap.models.arrays import Arrays
from torch import nn
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

Derivative = Callable[..., tuple[Any, ...]]


class _Held(nn.Module):
    """Its weights, and the derivative of a point."""

    def __init__(self, value: Callable[..., Any], weights: Arrays, derivative: Callable[[Any], Derivative]) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.tensor(array))
        self._names = tuple(weights)
        self._value, self._derivative = value, derivative

    def _items(self, *inputs: Any) -> tuple[Any, ...]:
        weights = {name: getattr(self, name) for name in self._names}
        of_point = self._derivative(lambda point: self._value(point, torch, weights))
        if len(inputs[0]) == 1:
            return tuple(each[None] for each in of_point(*(each[0] for each in inputs)))
        return tuple(vmap(of_point)(*inputs))


class AtPoint(_Held):
    def forward(self, point: Any) -> tuple[Any, ...]:
        return self._items(point)


class Along(_Held):
    def forward(self, point: Any, along: Any) -> tuple[Any, ...]:
        return self._items(point, along)


class Implementation(OfFunction):
    directions: ClassVar = {
        "infer": ("",),
        "jvp": (FORWARD,),
        "vjp": (REVERSE,),
        "jacobian": (REVERSE, FORWARD),
        "hvp": (FORWARD, REVERSE),
        "hessian": (FORWARD, REVERSE),
    }

    def build(self, weights: Arrays) -> nn.Module:
        kind, derivative = _DERIVATIVES[self.mode]
        direction = self.direction
        return kind(self.function.value, weights, lambda value: derivative(value, direction)).eval()


def _value(value: Any, _direction: str) -> Derivative:
    return lambda point: (value(point),)


def _jvp(value: Any, _direction: str) -> Derivative:
    return lambda point, along: jvp(value, (point,), (along,))


def _vjp(value: Any, _direction: str) -> Derivative:
    def of_point(point: Any, along: Any) -> tuple[Any, ...]:
        found, back = vjp(value, point)
        return found, back(along)[0]

    return of_point


def _jacobian(value: Any, direction: str) -> Derivative:
    whole = (jacfwd if direction == FORWARD else jacrev)(value)
    return lambda point: (whole(point),)


def _hvp(value: Any, direction: str) -> Derivative:
    slope = grad(value)
    if direction == FORWARD:
        return lambda point, along: jvp(slope, (point,), (along,))[1:]
    return lambda point, along: vjp(slope, point)[1](along)


def _hessian(value: Any, direction: str) -> Derivative:
    whole = (jacfwd if direction == FORWARD else jacrev)(jacrev(value))
    return lambda point: (whole(point),)


_DERIVATIVES: dict[str, Any] = {
    "infer": (AtPoint, _value),
    "jvp": (Along, _jvp),
    "vjp": (Along, _vjp),
    "jacobian": (AtPoint, _jacobian),
    "hvp": (Along, _hvp),
    "hessian": (AtPoint, _hessian),
}
