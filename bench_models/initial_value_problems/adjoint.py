"""Gradients through a solution, in float64: its adjoint equations, which run backwards along the dense solution.

With a(t) the slope of the loss by the state at t: a' = -a J, and the gradient by weights grows by a dF/dw. Both are
differentiated by the chain rule through the NumPy rates. Tests compare them with complex steps through the solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.initial_value_problems.problem import Problem
from fairlap.models.checks.differentiation import gradients

Array = npt.NDArray[Any]

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
