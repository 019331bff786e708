"""Where a layer of tanh that gets its own output comes to rest: a deep equilibrium model (Bai and others, 2019).

The layer halves distances at least, nearly always: its matrix has a norm of about 0.5.
"""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.differentiated_functions.function import FixedPoint, Function
from fairlap.models.spec import Normal, Weight

NUMBERS, STATES, STEPS = 16, 64, 50


def equilibrium(name: str, *, is_implicit: bool) -> Function:
    return Function(
        name=name,
        task="derivatives of a fixed point",
        published="arithmetic: the sizes of its layer",
        value=_value,
        numbers=NUMBERS,
        outputs=STATES,
        weights=(
            Weight("again", (STATES, STATES), Normal(0.25 * STATES**-0.5), trained=False),
            Weight("once", (NUMBERS, STATES), Normal(NUMBERS**-0.5), trained=False),
        ),
        fixed_point=_FIXED_POINT if is_implicit else None,
    )


def _step(at: Any, point: Any, arrays: Any, weights: Any) -> Any:
    return arrays.tanh(at @ weights["again"] + point @ weights["once"])


def _slope(at: Any, _point: Any, arrays: Any, weights: Any) -> Any:
    """At rest the output of tanh is where it is, so its slope is 1 less the square of that."""
    return (1 - at * at)[..., None] * arrays.swapaxes(weights["again"], 0, 1)


_FIXED_POINT = FixedPoint(_step, _slope, STEPS)


def _value(point: Any, arrays: Any, weights: Any) -> Any:
    return _FIXED_POINT.found(arrays.zeros_like(point @ weights["once"]), point, arrays, weights)
