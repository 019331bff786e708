"""The reference of a problem: its closed form where there is one, or else SciPy at a tight tolerance, item by item.

DOP853 (order 8) solves problems that are not stiff, Radau (order 5) those that are. Tests compare it with mpmath's
Taylor series, with another method, and with what the equations conserve.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.bench_models.initial_value_problems.problem import CHANGE, END, RATES, STATE
from fairlap.errors import NotAvailable
from fairlap.models.arrays import Arrays

_TOLERANCES = {"DOP853": 1e-13, "Radau": 1e-12}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        model = InNumPy(spec)
        self._problem, self._rates = model.problem, model.rates()

    def forward(self, _weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        problem = self._problem
        ends = [self._end(start) for start in problem.flat_start * (1 + inputs[CHANGE])]
        states = problem.flat_sizes * inputs[STATE]
        return {
            END: np.array(ends, np.float64),
            RATES: np.array([self._rates(problem.end_time, state) for state in states], np.float64),
        }

    def _end(self, start: npt.NDArray[Any]) -> npt.NDArray[Any]:
        from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

        problem = self._problem
        if problem.exact is not None:
            return problem.exact(start.reshape(problem.start.shape)).reshape(-1)
        method = "Radau" if problem.stiff else "DOP853"
        tolerance = _TOLERANCES[method]
        solved = solve_ivp(
            self._rates,
            (0.0, problem.end_time),
            start,
            method=method,
            rtol=tolerance,
            atol=tolerance * problem.smallest_size,
        )
        if solved.status != 0:
            raise NotAvailable(f"the reference of {problem.name} cannot be computed: {solved.message}")
        end: npt.NDArray[Any] = solved.y[:, -1]
        return end
