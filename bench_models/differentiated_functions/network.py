"""A network of one hidden layer, from ``numbers`` to ``outputs``, whose Jacobian has that shape."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.differentiated_functions.function import Function
from fairlap.models.spec import Normal, Uniform, Weight

HIDDEN = 64


def network(numbers: int, outputs: int) -> Function:
    return Function(
        name=f"map_{numbers}_to_{outputs}",
        task="derivatives of a network",
        published="arithmetic: the sizes of its layers",
        value=_value,
        numbers=numbers,
        outputs=outputs,
        weights=(
            Weight("first", (numbers, HIDDEN), Normal(numbers**-0.5), trained=False),
            Weight("first_bias", (HIDDEN,), Uniform(-0.5, 0.5), trained=False),
            Weight("second", (HIDDEN, outputs), Normal(HIDDEN**-0.5), trained=False),
        ),
        by_sample=True,
    )


def _value(point: Any, arrays: Any, weights: Any) -> Any:
    return arrays.tanh(point @ weights["first"] + weights["first_bias"]) @ weights["second"]
