"""References of differential equations, against Taylor series, closed forms, other methods and what is conserved."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.bench_models.initial_value_problems.problem import CHANGE, END, STATE, TOLERANCE, Problem
from fairlap.bench_models.initial_value_problems.reference import Implementation as Reference
from fairlap.models.draw import draw_inputs
from fairlap.models.registry import find, workload_names
from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

Array = npt.NDArray[np.float64]

PROBLEMS = ("arenstorf", "brusselator_2d", "heat_2d", "lorenz", "robertson", "van_der_pol")
STIFF = ("robertson", "van_der_pol")


def problem_named(name: str) -> Problem:
    found: Problem = import_module(f"fairlap.bench_models.{name}.spec").PROBLEM
    return found


def reference_end(problem: Problem) -> Array:
    """From the start itself."""
    still = {CHANGE: np.zeros((1, problem.numbers)), STATE: np.ones((1, problem.numbers)), TOLERANCE: np.ones(1)}
    found: Array = Reference(SimpleNamespace(PROBLEM=problem)).forward({}, still)[END][0]  # type: ignore[arg-type]
    return found


def solved(problem: Problem, method: str, tolerance: float) -> Array:
    rates = InNumPy(SimpleNamespace(PROBLEM=problem)).rates()  # type: ignore[arg-type]
    found = solve_ivp(
        rates,
        (0.0, problem.end_time),
        problem.flat_start,
        method=method,
        rtol=tolerance,
        atol=tolerance * problem.smallest_size,
    )
    end: Array = found.y[:, -1]
    return end


def test_these_are_the_problems() -> None:
    assert {name for name in workload_names() if "solve" in find(name).spec.modes} == set(PROBLEMS)


@pytest.mark.parametrize("name", ["lorenz", "arenstorf"])
def test_the_reference_is_the_taylor_series_of_mpmath(name: str) -> None:
    problem = replace(problem_named(name), end_time=0.02)
    with mpmath.workdps(25):
        series = mpmath.odefun(lambda time, state: [*problem.rates(time, state, None)], 0, [*problem.flat_start])
        exact = np.array([float(each) for each in series(0.02)])
    np.testing.assert_allclose(reference_end(problem), exact, rtol=1e-11)


def test_the_closed_form_of_heat_is_what_solving_its_equations_gives() -> None:
    problem = problem_named("heat_2d")
    np.testing.assert_allclose(solved(problem, "DOP853", 1e-11), reference_end(problem), rtol=1e-9)


def test_arenstorfs_orbit_ends_where_it_began() -> None:
    problem = problem_named("arenstorf")
    assert np.abs(reference_end(problem) - problem.flat_start).max() < 1e-6


def test_robertsons_components_add_up_to_what_they_did_and_are_those_of_another_method() -> None:
    problem = replace(problem_named("robertson"), end_time=40.0)
    end = reference_end(problem)
    assert end.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(solved(problem, "LSODA", 1e-12), end, rtol=1e-8)
    # As published with LSODE, to four digits.
    np.testing.assert_allclose(end, (7.158e-1, 9.185e-6, 2.842e-1), rtol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["van_der_pol", "robertson", "brusselator_2d"])
def test_another_method_comes_to_the_same_end(name: str) -> None:
    problem = problem_named(name)
    np.testing.assert_allclose(solved(problem, "LSODA", 1e-12), reference_end(problem), rtol=1e-7)


@pytest.mark.slow
def test_van_der_pol_has_jumped_by_the_end_from_every_initial_value() -> None:
    problem = problem_named("van_der_pol")
    for moved in (-problem.spread, problem.spread):
        start = problem.flat_start * (1 + moved)
        end = reference_end(replace(problem, start=start))
        assert start[0] > 1
        assert end[0] < -1.9


@pytest.mark.parametrize(
    "name", ["brusselator_2d", "heat_2d", "lorenz", *(pytest.param(each, marks=pytest.mark.slow) for each in STIFF)]
)
def test_sizes_are_those_of_the_end_to_a_power_of_ten(name: str) -> None:
    problem = problem_named(name)
    assert len(problem.sizes) == len(problem.start)
    ends = np.abs(reference_end(problem)).reshape(len(problem.sizes), -1).max(axis=1)
    assert (np.abs(np.log10(ends / problem.sizes)) < 1).all()


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_library_has_the_rates_of_the_reference(name: str, library: str) -> None:
    arrays = pytest.importorskip(library, reason="`make test` installs it and runs this")
    problem, spec = problem_named(name), import_module(f"fairlap.bench_models.{name}.spec")
    states = problem.flat_sizes * draw_inputs(find(name).spec, 3, seed=1)[STATE]
    by_item = InNumPy(spec).rates()
    in_numpy = np.array([np.asarray(by_item(1.0, state)) for state in states])
    model = import_module(f"fairlap.bench_models.initial_value_problems.{library}_model")
    rates = model.Implementation(spec).rates()
    got = _in_jax(arrays, rates, states) if library == "jax" else rates(1.0, arrays.from_numpy(states)).numpy()
    np.testing.assert_allclose(got, in_numpy, rtol=1e-12, atol=1e-12 * np.abs(in_numpy).max())


def _in_jax(jax: Any, rates: Any, states: Array) -> Array:
    with jax.enable_x64(True):
        return np.array([np.asarray(rates(1.0, jax.numpy.asarray(state))) for state in states])
