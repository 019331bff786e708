"""The oscillator of Van der Pol with a damping of 1,000, from just before a jump until just after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem

DAMPING = 1e3
_START = 1.05  # it jumps at 1


def rates(_time: Any, components: Any, _arrays: Any) -> tuple[Any, ...]:
    position, speed = components
    return speed, DAMPING * (1 - position * position) * speed - position


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="van_der_pol",
    task="stiff differential equations",
    published="Hairer and Wanner, Solving Ordinary Differential Equations II, problem VDPOL",
    rates=rates,
    start=np.array((_START, -_START / (DAMPING * (_START * _START - 1)))),
    end_time=5.0,
    sizes=(2.0, 7e-4),
    stiff=True,
    spread=0.01,
)
SPEC = PROBLEM.spec()
