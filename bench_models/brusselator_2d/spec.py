"""The Brusselator with diffusion on a square of 16 by 16 points whose edges meet, by the method of lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.periodic_grid import laplacian
from fairlap.bench_models.initial_value_problems.problem import Problem

POINTS = 16
SPACING = 1 / POINTS
DIFFUSION = 0.02
FED, REACTING = 1.0, 3.4


def rates(_time: Any, components: Any, arrays: Any) -> tuple[Any, ...]:
    u, v = components
    reacted = u * u * v
    return (
        FED + reacted - (REACTING + 1) * u + DIFFUSION * laplacian(u, arrays, SPACING),
        REACTING * u - reacted + DIFFUSION * laplacian(v, arrays, SPACING),
    )


def _start() -> npt.NDArray[np.float64]:
    x, y = np.meshgrid(np.arange(POINTS) * SPACING, np.arange(POINTS) * SPACING, indexing="ij")
    return np.stack((22 * (y * (1 - y)) ** 1.5, 27 * (x * (1 - x)) ** 1.5))


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="brusselator_2d",
    task="reaction and diffusion on a grid",
    published="Hairer and Wanner, Solving Ordinary Differential Equations II, problem BRUSS-2D, without forcing",
    rates=rates,
    start=_start(),
    end_time=2.0,
    sizes=(1.0, 3.0),
    stiff=False,
)
SPEC = PROBLEM.spec()
