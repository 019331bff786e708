"""The loss of a small perceptron on 32 items, as a function of its 161 parameters."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.differentiated_functions.function import Function
from fairlap.models.spec import Normal, Weight

ITEMS, FEATURES, HIDDEN = 32, 8, 16
FIRST, SECOND = FEATURES * HIDDEN, FEATURES * HIDDEN + HIDDEN
LAST = SECOND + HIDDEN
PARAMETERS = LAST + 1


def value(point: Any, arrays: Any, weights: Any) -> Any:
    before = tuple(point.shape[:-1])
    first = arrays.reshape(point[..., :FIRST], (*before, FEATURES, HIDDEN))
    hidden = arrays.tanh(weights["items"] @ first + point[..., None, FIRST:SECOND])
    found = hidden @ point[..., SECOND:LAST, None] + point[..., None, LAST:]
    return arrays.mean((found - weights["targets"]) ** 2, (-2, -1))


IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = Function(
    name="mlp_loss",
    task="derivatives of a loss",
    published="arithmetic: the sizes of its layers",
    value=value,
    numbers=PARAMETERS,
    fill=Normal(0.3),
    weights=(
        Weight("items", (ITEMS, FEATURES), Normal(1.0), trained=False),
        Weight("targets", (ITEMS, 1), Normal(1.0), trained=False),
    ),
)
SPEC = FUNCTION.spec()
