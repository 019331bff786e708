"""The logarithm of a sum of exponentials, whose gradient is the softmax. Without a shift: nothing drawn overflows."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.differentiated_functions.function import Function


def value(point: Any, arrays: Any, _weights: Any) -> Any:
    return arrays.log(arrays.sum(arrays.exp(point), -1))


IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = Function(
    name="log_sum_exp",
    task="derivatives of a softmax",
    published="Boyd and Vandenberghe, Convex Optimization, section 3.1.5",
    value=value,
    numbers=128,
    size=0.01,
)
SPEC = FUNCTION.spec()
