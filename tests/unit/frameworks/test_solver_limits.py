"""A solver that cannot solve a problem in time gives up after as many evaluations as it is allowed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.frameworks.solvers import scipy as in_scipy
from fairlap.frameworks.solvers.solver_library import Inputs


def solved(solver: str, problem_name: str, items: int = 1, relative: float = 1e-6) -> tuple[Any, int]:
    """And how often the rates were evaluated for the solution."""
    spec = import_module(f"fairlap.bench_models.{problem_name}.spec")
    problem, evaluations = spec.PROBLEM, 0
    rates = InNumPy(spec).rates()

    def counted(time: float, state: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return rates(time, state)

    starts = np.tile(problem.flat_start, (items, 1))
    found = in_scipy.solved(
        problem, counted, solver, Inputs(starts, starts, relative, relative * problem.smallest_size)
    )
    return found, evaluations - items  # those at the drawn states


@pytest.mark.parametrize("solver", ["RK45", "LSODA", "Radau"])
def test_a_solver_gives_up_after_so_many_evaluations(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_scipy, "MOST_EVALUATIONS", 100)
    found, evaluations = solved(solver, "robertson", items=2)
    assert np.isnan(found.end).all()
    assert np.isfinite(found.rates).all()
    assert evaluations == 2 * 100
    assert found.evaluations == 100


def test_an_explicit_solver_gives_up_on_a_stiff_problem_and_an_implicit_one_solves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_scipy, "MOST_EVALUATIONS", 5000)
    stuck, evaluations = solved("RK23", "robertson")
    assert np.isnan(stuck.end).all()
    assert evaluations == 5000
    ended, few = solved("LSODA", "robertson")
    assert np.isfinite(ended.end).all()
    assert few < 2000
