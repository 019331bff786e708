"""Three bodies of one mass that chase each other along a figure of eight. Each is where it began after one period."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem

PERIOD = 6.32591398
_PLACE = (0.97000436, -0.24308753)
_SPEED = (0.93240737, 0.86473146)


def rates(_time: Any, components: Any, arrays: Any) -> tuple[Any, ...]:
    places, speeds = components  # a row for each body
    pulls = [_pull(arrays.roll(places, others, -2) - places, arrays) for others in (1, 2)]
    return speeds, pulls[0] + pulls[1]


def _pull(apart: Any, arrays: Any) -> Any:
    return apart / (arrays.sum(apart * apart, -1) ** 1.5)[..., None]


def _start() -> np.ndarray:
    place, speed = np.array(_PLACE), np.array(_SPEED)
    return np.array(((place, -place, 0 * place), (speed / 2, speed / 2, -speed)))


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="three_bodies",
    task="three bodies that attract each other",
    published="Chenciner and Montgomery, A remarkable periodic solution of the three-body problem, 2000",
    rates=rates,
    start=_start(),
    end_time=PERIOD,
    sizes=(1.0, 1.0),
    stiff=False,
    spread=1e-3,
)
SPEC = PROBLEM.spec()
