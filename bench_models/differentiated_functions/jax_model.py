"""Derivatives in JAX: of a single point as they are, of several under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from fairlap.bench_models.differentiated_functions.function import ALONG, FORWARD, POINT, REVERSE, OfFunction
from fairlap.models.arrays import Arrays

Derivative = Callable[..., tuple[Any, ...]]


class Implementation(OfFunction):
    directions: ClassVar = {
        "infer": ("",),
        "jvp": (FORWARD,),
        "vjp": (REVERSE,),
        "jacobian": (REVERSE, FORWARD),
        "hvp": (FORWARD, REVERSE),
        "hessian": (FORWARD, REVERSE),
    }

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        of_point = _DERIVATIVES[self.mode](lambda point: self.function.value(point, jnp, params), self.direction)
        given = [inputs[name] for name in (POINT, ALONG) if name in inputs]
        if len(given[0]) == 1:
            return tuple(each[None] for each in of_point(*(each[0] for each in given)))
        return tuple(jax.vmap(of_point)(*given))


def _value(value: Any, _direction: str) -> Derivative:
    return lambda point: (value(point),)


def _jvp(value: Any, _direction: str) -> Derivative:
    return lambda point, along: jax.jvp(value, (point,), (along,))


def _vjp(value: Any, _direction: str) -> Derivative:
    def of_point(point: Any, along: Any) -> tuple[Any, ...]:
        found, back = jax.vjp(value, point)
        return found, back(along)[0]

    return of_point


def _jacobian(value: Any, direction: str) -> Derivative:
    whole = (jax.jacfwd if direction == FORWARD else jax.jacrev)(value)
    return lambda point: (whole(point),)


def _hvp(value: Any, direction: str) -> Derivative:
    slope = jax.grad(value)
    if direction == FORWARD:
        return lambda point, along: jax.jvp(slope, (point,), (along,))[1:]
    return lambda point, along: jax.vjp(slope, point)[1](along)


def _hessian(value: Any, direction: str) -> Derivative:
    whole = (jax.jacfwd if direction == FORWARD else jax.jacrev)(jax.jacrev(value))
    return lambda point: (whole(point),)


_DERIVATIVES: dict[str, Any] = {
    "infer": _value,
    "jvp": _jvp,
    "vjp": _vjp,
    "jacobian": _jacobian,
    "hvp": _hvp,
    "hessian": _hessian,
}
