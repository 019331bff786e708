"""Robertson's three reactions, whose rates are nine powers of ten apart. The sum of the components stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem

SLOW, FAST, FASTEST = 0.04, 1e4, 3e7


def rates(_time: Any, components: Any, _arrays: Any) -> tuple[Any, ...]:
    first, second, third = components
    decay, back, forth = SLOW * first, FAST * second * third, FASTEST * second * second
    return back - decay, decay - back - forth, forth


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="robertson",
    task="stiff differential equations",
    published="Hairer and Wanner, Solving Ordinary Differential Equations II, problem ROBER",
    rates=rates,
    start=np.array((1.0, 0.0, 0.0)),
    end_time=1e4,
    sizes=(0.1, 5e-7, 1.0),
    stiff=True,
)
SPEC = PROBLEM.spec()
