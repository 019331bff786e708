"""Arenstorf's orbit: a small body among two large ones, which returns to where it began after one period."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import Problem

MOON = 0.012277471  # its share of the mass
EARTH = 1 - MOON
PERIOD = 17.0652165601579625588917206249


def rates(_time: Any, components: Any, _arrays: Any) -> tuple[Any, ...]:
    x, y, along, across = components
    to_earth = ((x + MOON) ** 2 + y * y) ** 1.5
    to_moon = ((x - EARTH) ** 2 + y * y) ** 1.5
    pull_x = x + 2 * across - EARTH * (x + MOON) / to_earth - MOON * (x - EARTH) / to_moon
    pull_y = y - 2 * along - EARTH * y / to_earth - MOON * y / to_moon
    return along, across, pull_x, pull_y


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="arenstorf",
    task="the orbit of three bodies",
    published="Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.0",
    rates=rates,
    start=np.array((0.994, 0.0, 0.0, -2.00158510637908252240537862224)),
    end_time=PERIOD,
    sizes=(1.0, 1.0, 2.0, 2.0),
    stiff=False,
    spread=1e-6,
)
SPEC = PROBLEM.spec()
