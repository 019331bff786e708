"""The heat equation on a square of 16 by 16 points whose edges meet: each wave on it decays at its own known rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.periodic_grid import laplacian
from fairlap.bench_models.initial_value_problems.problem import Problem

POINTS = 16
SPACING = 1 / POINTS
_END_TIME = 0.02


def rates(_time: Any, components: Any, arrays: Any) -> tuple[Any, ...]:
    (heat,) = components
    return (laplacian(heat, arrays, SPACING),)


def exact(start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Decay each wave by the eigenvalue that the second differences on this grid have for it."""
    along = (2 - 2 * np.cos(2 * np.pi * np.fft.fftfreq(POINTS))) / SPACING**2
    decay = np.exp(-_END_TIME * (along[:, None] + along[None, :]))
    end: npt.NDArray[np.float64] = np.fft.ifft2(np.fft.fft2(start) * decay).real
    return end


def _start() -> npt.NDArray[np.float64]:
    x, y = np.meshgrid(np.arange(POINTS) * SPACING, np.arange(POINTS) * SPACING, indexing="ij")
    found: npt.NDArray[np.float64] = 1 + np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y) + 0.5 * np.cos(6 * np.pi * x)
    return found[None]


IMPLEMENTED_IN = "fairlap.bench_models.initial_value_problems"
PROBLEM = Problem(
    name="heat_2d",
    task="the heat equation on a grid",
    published="the discrete Fourier transform of its grid, in closed form",
    rates=rates,
    start=_start(),
    end_time=_END_TIME,
    sizes=(1.0,),
    stiff=False,
    exact=exact,
)
SPEC = PROBLEM.spec()
