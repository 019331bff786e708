"""Derivatives by the function transforms that JAX and ``torch.func`` have under the same names.

Of a single point they are taken as they are, of several under ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from fairlap.bench_models.differentiated_functions.function import FORWARD, REVERSE, OfFunction

Derivative = Callable[..., tuple[Any, ...]]


class ByTransforms(OfFunction):
    transforms: ClassVar[Any]  # the module that has them
    directions: ClassVar = {
        "infer": ("",),
        "jvp": (FORWARD,),
        "vjp": (REVERSE,),
        "jacobian": (REVERSE, FORWARD),
        "hvp": (FORWARD, REVERSE),
        "hessian": (FORWARD, REVERSE),
        "third": (FORWARD, REVERSE),
        "per-sample": (REVERSE,),
    }

    def derivative(self, arrays: Any) -> Callable[[dict[str, Any], Sequence[Any]], tuple[Any, ...]]:
        """Make what takes the derivative that the mode names, from weights and inputs."""
        of, value = self.transforms, self.value
        if self.mode == "per-sample":
            return _by_sample(of, value, arrays)
        derived, direction = _DERIVATIVES[self.mode], self.direction

        def at_points(weights: dict[str, Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
            of_point: Derivative = derived(of, lambda point: value(point, arrays, weights), direction)
            if len(inputs[0]) == 1:
                return tuple(each[None] for each in of_point(*(each[0] for each in inputs)))
            return tuple(of.vmap(of_point)(*inputs))

        return at_points


def _by_sample(of: Any, value: Any, arrays: Any) -> Callable[[dict[str, Any], Sequence[Any]], tuple[Any, ...]]:
    def loss(weights: dict[str, Any], point: Any, target: Any) -> Any:
        off = value(point, arrays, weights) - target
        return (off * off).mean()

    gradient = of.vmap(of.grad(loss), (None, 0, 0))

    def of_samples(weights: dict[str, Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        found = gradient(weights, *inputs)
        return tuple(found[name] for name in weights)

    return of_samples


def _value(_: Any, value: Any, _direction: str) -> Derivative:
    return lambda point: (value(point),)


def _jvp(of: Any, value: Any, _direction: str) -> Derivative:
    return lambda point, along: of.jvp(value, (point,), (along,))


def _vjp(of: Any, value: Any, _direction: str) -> Derivative:
    def of_point(point: Any, along: Any) -> tuple[Any, ...]:
        found, back = of.vjp(value, point)
        return found, back(along)[0]

    return of_point


def _jacobian(of: Any, value: Any, direction: str) -> Derivative:
    whole = (of.jacfwd if direction == FORWARD else of.jacrev)(value)
    return lambda point: (whole(point),)


def _hvp(of: Any, value: Any, direction: str) -> Derivative:
    slope = of.grad(value)
    if direction == FORWARD:
        return lambda point, along: of.jvp(slope, (point,), (along,))[1:]
    return lambda point, along: of.vjp(slope, point)[1](along)


def _hessian(of: Any, value: Any, direction: str) -> Derivative:
    whole = (of.jacfwd if direction == FORWARD else of.jacrev)(of.jacrev(value))
    return lambda point: (whole(point),)


def _third(of: Any, value: Any, direction: str) -> Derivative:
    """Take the gradient of the curvature along a vector: differentiate the slope along it, twice."""
    slope = of.grad(value)

    def of_point(point: Any, along: Any) -> tuple[Any, ...]:
        def twice(once: Any) -> Any:
            if direction == FORWARD:
                return lambda at: of.jvp(once, (at,), (along,))[1]
            return lambda at: of.vjp(once, at)[1](along)[0]

        return (twice(twice(slope))(point),)

    return of_point


_DERIVATIVES: dict[str, Any] = {
    "infer": _value,
    "jvp": _jvp,
    "vjp": _vjp,
    "jacobian": _jacobian,
    "hvp": _hvp,
    "hessian": _hessian,
    "third": _third,
}
