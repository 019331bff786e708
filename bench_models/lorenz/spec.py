"""Lorenz's equations of convection. They are chaotic; until time 5 an error grows about a hundredfold."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem

PRANDTL, RAYLEIGH, GEOMETRY = 10.0, 28.0, 8.0 / 3.0


def rates(_time: Any, components: Any, _arrays: Any) -> tuple[Any, ...]:
    x, y, z = components
    return PRANDTL * (y - x), x * (RAYLEIGH - z) - y, x * y - GEOMETRY * z


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="lorenz",
    task="chaotic differential equations",
    published="Lorenz, Deterministic Nonperiodic Flow, 1963",
    rates=rates,
    start=np.array((1.0, 1.0, 1.0)),
    end_time=5.0,
    sizes=(7.0, 7.0, 24.0),
    stiff=False,
)
SPEC = PROBLEM.spec()
