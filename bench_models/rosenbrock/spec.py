"""Rosenbrock's function of a hundred numbers, whose Hessian has three diagonals."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.differentiated_functions.function import Function
from fairlap.models.spec import Uniform


def value(point: Any, arrays: Any, _weights: Any) -> Any:
    one, next_one = point[..., :-1], point[..., 1:]
    return arrays.sum(100 * (next_one - one**2) ** 2 + (1 - one) ** 2, -1)


IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = Function(
    name="rosenbrock",
    task="derivatives of a polynomial",
    published="Rosenbrock, An automatic method for finding the greatest or least value of a function, 1960",
    value=value,
    numbers=100,
    fill=Uniform(-1.0, 1.0),
    size=100.0,
)
SPEC = FUNCTION.spec()
