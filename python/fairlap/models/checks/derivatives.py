"""The derivatives of NumPy's element-wise functions and of products of matrices: one rule for each operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Part(NamedTuple):
    """The gradient at a part of an operand that was taken by slices. It is 0 elsewhere."""

    key: Any
    gradient: Array
    shape: tuple[int, ...]  # of the operand


Backward = Callable[[Array], Array]  # from the gradient of a result to that of one operand


class NotDifferentiable(Exception):
    """An operation without a rule here."""


def _of_matmul(_result: Array, one: Array, other: Array) -> list[Backward]:
    def of_one(gradient: Array) -> Array:
        if other.ndim == 1:
            return gradient[..., None] * other
        part: Array = (gradient[..., None, :] if one.ndim == 1 else gradient) @ other.swapaxes(-1, -2)
        return part[..., 0, :] if one.ndim == 1 else part

    def of_other(gradient: Array) -> Array:
        if one.ndim == 1:
            return one[:, None] * gradient[..., None, :] if other.ndim > 1 else gradient * one
        if other.ndim == 1:
            return (one.swapaxes(-1, -2) @ gradient[..., None])[..., 0]
        part: Array = one.swapaxes(-1, -2) @ gradient
        return part

    return [of_one, of_other]


def _of_power(result: Array, base: Array, exponent: Any) -> list[Backward]:
    def of_exponent(_gradient: Array) -> Array:
        raise NotDifferentiable("a power is differentiated by its base only")

    return [lambda gradient: gradient * exponent * np.power(base, exponent - 1), of_exponent]


PLAIN = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.sign, np.isfinite}
RULES: dict[str, Callable[..., list[Backward]]] = {
    "add": lambda _result, _one, _other: [lambda g: g, lambda g: g],
    "subtract": lambda _result, _one, _other: [lambda g: g, np.negative],
    "multiply": lambda _result, one, other: [lambda g: g * other, lambda g: g * one],
    "divide": lambda result, _one, other: [lambda g: g / other, lambda g: -g * result / other],
    "negative": lambda _result, _one: [np.negative],
    "matmul": _of_matmul,
    "power": _of_power,
    "square": lambda _result, one: [lambda g: g * 2 * one],
    "sqrt": lambda result, _one: [lambda g: g / (2 * result)],
    "exp": lambda result, _one: [lambda g: g * result],
    "log": lambda _result, one: [lambda g: g / one],
    "tanh": lambda result, _one: [lambda g: g * (1 - result**2)],
    "expit": lambda result, _one: [lambda g: g * result * (1 - result)],
    "erf": lambda _result, one: [lambda g: g * (2 / math.sqrt(math.pi)) * np.exp(-(one**2))],
    # A tie goes to the second operand: the slope of a ReLU at zero is zero, as it is in every framework.
    "maximum": lambda _result, one, other: [lambda g: g * (one > other), lambda g: g * (one <= other)],
    "minimum": lambda _result, one, other: [lambda g: g * (one < other), lambda g: g * (one >= other)],
}
