"""A neural ordinary differential equation: the rates of eight numbers are a small network with given weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem
from fairlap.models.spec import Normal, Uniform, Weight

NUMBERS, HIDDEN = 8, 64


def rates(_time: Any, components: Any, arrays: Any, weights: Mapping[str, Any]) -> tuple[Any, ...]:
    (state,) = components
    hidden = arrays.tanh(state @ weights["first.weight"].T + weights["first.bias"])
    return (hidden @ weights["second.weight"].T + weights["second.bias"],)


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="neural_ode",
    task="a neural network as differential equations",
    published="Chen et al., Neural Ordinary Differential Equations, 2018; sizes and weights are ours",
    rates=rates,
    start=np.linspace(-1.0, 1.0, NUMBERS)[None],
    end_time=4.0,
    sizes=(1.0,),
    stiff=False,
    weights=(
        Weight("first.weight", (HIDDEN, NUMBERS), Normal(NUMBERS**-0.5)),
        Weight("first.bias", (HIDDEN,), Uniform(-0.5, 0.5)),
        Weight("second.weight", (NUMBERS, HIDDEN), Normal(HIDDEN**-0.5)),
        Weight("second.bias", (NUMBERS,), Uniform(-0.1, 0.1)),
    ),
)
SPEC = PROBLEM.spec()
