"""The reference of a problem: its closed form where there is one, or else SciPy at a tight tolerance, item by item.

DOP853 (order 8) solves problems that are not stiff, Radau (order 5) those that are. Tests compare it with mpmath's
Taylor series, with another method, and with what the equations conserve.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.bench_models.initial_value_problems.problem import (
    BY_START,
    BY_WEIGHT,
    CHANGE,
    END,
    LOSS,
    RATES,
    STATE,
    Problem,
)
from fairlap.errors import NotAvailable
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import gradients

# Gradients through a solution, in float64: its adjoint equations, which run backwards along the dense solution. With
# a(t) the slope of the loss by the state at t: a' = -a J, and the gradient by weights grows by a dF/dw. Both are
# differentiated by the chain rule through the NumPy rates. Tests compare them with complex steps through the solver.
_STATE = "state"


def gradient_by_start_and_weights(
    problem: Problem, weights: Mapping[str, Array], solution: Any, slope: Array, tolerance: float
) -> tuple[Array, dict[str, Array]]:
    """Carry the ``slope`` of a loss by the end back to the start. ``solution`` gives the state at any time."""
    from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

    count = problem.numbers

    def backward(time: float, carried: Array) -> Array:
        along = carried[:count]

        def along_rates(traced: Mapping[str, Any]) -> Any:
            components = traced[_STATE].reshape(problem.start.shape)
            rates = problem.rates_with(traced)(time, tuple(components), np)
            return (np.stack(rates).reshape(-1) * along).sum()

        found = gradients(along_rates, {_STATE: solution(time), **weights})[1]
        return -np.concatenate([found[_STATE], *(found[name].reshape(-1) for name in weights)])

    at_end = np.concatenate([slope, *(np.zeros(array.size) for array in weights.values())])
    absolute = tolerance * float(np.abs(slope).max())
    solved = solve_ivp(
        backward, (problem.end_time, 0.0), at_end, method="DOP853", rtol=tolerance, atol=max(absolute, 1e-300)
    )
    if solved.status != 0:
        raise ArithmeticError(solved.message)
    at_start = solved.y[:, -1]
    ends = np.cumsum([count, *(array.size for array in weights.values())])
    parts = np.split(at_start, ends[:-1])
    by_weight = {name: part.reshape(weights[name].shape) for name, part in zip(weights, parts[1:], strict=True)}
    return parts[0], by_weight


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
