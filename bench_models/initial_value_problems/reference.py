"""The reference of a problem: its closed form where there is one, or else SciPy at a tight tolerance, item by item.

DOP853 (order 8) solves problems that are not stiff, Radau (order 5) those that are. Tests compare it with mpmath's
Taylor series, with another method, and with what the equations conserve.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.adjoint import gradient_by_start_and_weights
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT, CHANGE, END, LOSS, RATES, STATE
from fairlap.errors import NotAvailable
from fairlap.models.arrays import Arrays

_TOLERANCES = {"DOP853": 1e-13, "Radau": 1e-12}
_OF_GRADIENTS = 1e-12  # the dense solution that they run along has no more digits

Array = npt.NDArray[Any]


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._model = InNumPy(spec)
        self._problem = self._model.problem

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        problem, rates = self._problem, self._model.rates(weights)
        ends = [self._end(weights, start) for start in self._starts(inputs)]
        states = problem.flat_sizes * inputs[STATE]
        return {
            END: np.array(ends, np.float64),
            RATES: np.array([rates(problem.end_time, state) for state in states], np.float64),
        }

    def gradients(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        """Compute the loss and its gradient. Of a batch, a weight's is the sum over the items."""
        problem = self._problem
        sizes, starts = problem.flat_sizes, self._starts(inputs)
        solved = [self._solved(weights, start, dense_output=True) for start in starts]
        ends = np.array([each.y[:, -1] for each in solved])
        slopes = 2 * ends / sizes**2 / ends.size
        by_item = [
            gradient_by_start_and_weights(problem, weights, each.sol, slope, _OF_GRADIENTS)
            for each, slope in zip(solved, slopes, strict=True)
        ]
        return {
            LOSS: np.asarray(problem.loss(ends, sizes)),
            BY_START: np.array([by_start for by_start, _ in by_item]),
            **{BY_WEIGHT + name: np.sum([each[name] for _, each in by_item], axis=0) for name in weights},
        }

    def _starts(self, inputs: Arrays) -> Array:
        starts: Array = self._problem.flat_start * (1 + inputs[CHANGE])
        return starts

    def _end(self, weights: Arrays, start: Array) -> Array:
        problem = self._problem
        if problem.exact is not None:
            return problem.exact(start.reshape(problem.start.shape)).reshape(-1)
        end: Array = self._solved(weights, start).y[:, -1]
        return end

    def _solved(self, weights: Arrays, start: Array, **more: bool) -> Any:
        from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

        problem = self._problem
        method = "Radau" if problem.stiff else "DOP853"
        tolerance = _TOLERANCES[method]
        solved = solve_ivp(
            self._model.rates(weights),
            (0.0, problem.end_time),
            start,
            method=method,
            rtol=tolerance,
            atol=tolerance * problem.smallest_size,
            **more,
        )
        if solved.status != 0:
            raise NotAvailable(f"the reference of {problem.name} cannot be computed: {solved.message}")
        return solved
