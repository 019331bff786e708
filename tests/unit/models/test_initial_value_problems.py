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
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

Array = npt.NDArray[np.float64]

PROBLEMS = (
    *("arenstorf", "brusselator_2d", "heat_2d", "lorenz", "neural_ode", "robertson", "three_bodies", "van_der_pol"),
)
STIFF = ("robertson", "van_der_pol")


def problem_named(name: str) -> Problem:
    found: Problem = import_module(f"fairlap.bench_models.{name}.spec").PROBLEM
    return found


def weights_of(problem: Problem) -> dict[str, Array]:
    drawn = draw_weights(problem.spec(), seed=0)
    return {name: array.astype(np.float64) for name, array in drawn.items()}


def reference_end(problem: Problem) -> Array:
    """From the start itself."""
    still = {
        CHANGE: np.zeros((1, problem.numbers)),
        STATE: np.linspace(0.1, 1, problem.numbers)[None],
        TOLERANCE: np.ones(1),
    }
    reference = Reference(SimpleNamespace(PROBLEM=problem))  # type: ignore[arg-type]
    found: Array = reference.forward(weights_of(problem), still)[END][0]
    return found


def solved(problem: Problem, method: str, tolerance: float) -> Array:
    rates = InNumPy(SimpleNamespace(PROBLEM=problem)).rates(weights_of(problem))  # type: ignore[arg-type]
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


@pytest.mark.slow_but("lorenz")
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


def test_three_bodies_end_where_they_began_with_the_energy_and_momenta_that_they_had() -> None:
    problem = problem_named("three_bodies")
    end = reference_end(problem)
    np.testing.assert_allclose(end, problem.flat_start, atol=1e-6)  # the published start has eight digits
    before, after = (conserved_by_three_bodies(state.reshape(2, 3, 2)) for state in (problem.flat_start, end))
    np.testing.assert_allclose(after, before, atol=1e-11)


def conserved_by_three_bodies(state: Array) -> Array:
    places, speeds = state
    apart = [np.linalg.norm(places[one] - places[other]) for one, other in ((0, 1), (0, 2), (1, 2))]
    energy = (speeds**2).sum() / 2 - sum(1 / each for each in apart)
    turning = (places[:, 0] * speeds[:, 1] - places[:, 1] * speeds[:, 0]).sum()
    return np.array([energy, turning, *speeds.sum(axis=0)])


def test_a_neural_equation_is_the_same_by_another_method_and_in_other_words() -> None:
    problem = problem_named("neural_ode")
    np.testing.assert_allclose(solved(problem, "LSODA", 1e-12), reference_end(problem), rtol=1e-8)
    weights, state = weights_of(problem), np.linspace(-0.7, 0.9, problem.numbers)
    hidden = [
        np.tanh(sum(row[place] * state[place] for place in range(8)) + bias)
        for row, bias in zip(weights["first.weight"], weights["first.bias"], strict=True)
    ]
    expected = np.einsum("ij,j->i", weights["second.weight"], hidden) + weights["second.bias"]
    rates = InNumPy(SimpleNamespace(PROBLEM=problem)).rates(weights)  # type: ignore[arg-type]
    np.testing.assert_allclose(rates(0.0, state), expected, rtol=1e-13)


def loss_from(problem: Problem, weights: dict[str, Array], start: Array) -> complex:
    """Of numbers that may be complex, whose step goes through the whole solver."""
    rates = InNumPy(SimpleNamespace(PROBLEM=problem)).rates(weights)  # type: ignore[arg-type]
    found = solve_ivp(rates, (0.0, problem.end_time), start, method="DOP853", rtol=1e-12, atol=1e-13)
    loss: complex = problem.loss(found.y[:, -1], problem.flat_sizes)
    return loss


@pytest.mark.parametrize(
    "name",
    ["neural_ode", *(pytest.param(each, marks=pytest.mark.slow) for each in ("lorenz", "three_bodies", "arenstorf"))],
)
def test_the_reference_of_gradients_is_what_a_complex_step_through_the_solver_shows(name: str) -> None:
    """Along one direction over all initial values, and another over all weights."""
    problem = problem_named(name)
    weights, drawn = weights_of(problem), np.random.default_rng(5)
    still = {CHANGE: np.zeros((1, problem.numbers))}
    reference = Reference(SimpleNamespace(PROBLEM=problem))  # type: ignore[arg-type]
    found = reference.gradients(weights, still)
    along = drawn.standard_normal(problem.numbers)
    complex_step = loss_from(problem, weights, problem.flat_start + 1e-30j * along)
    assert found["loss"] == pytest.approx(complex_step.real, rel=1e-8)
    assert found["grad/start"][0] @ along == pytest.approx(complex_step.imag / 1e-30, rel=1e-7)
    if weights:
        ways = {each: drawn.standard_normal(array.shape) for each, array in weights.items()}
        moved = {each: array + 1e-30j * ways[each] for each, array in weights.items()}
        by_step = loss_from(problem, moved, problem.flat_start.astype(complex)).imag / 1e-30
        by_weights = sum((found[f"grad/weights/{each}"] * ways[each]).sum() for each in weights)
        assert by_weights == pytest.approx(by_step, rel=1e-7)


def test_the_gradient_of_a_batch_is_that_of_its_mean_loss() -> None:
    problem = replace(problem_named("lorenz"), end_time=0.2)
    change = np.array(((0.01, -0.02, 0.0), (0.0, 0.02, 0.01)))
    reference = Reference(SimpleNamespace(PROBLEM=problem))  # type: ignore[arg-type]
    together = reference.gradients({}, {CHANGE: change})
    alone = [reference.gradients({}, {CHANGE: each[None]}) for each in change]
    assert together["loss"] == pytest.approx(np.mean([each["loss"] for each in alone]))
    np.testing.assert_allclose(together["grad/start"], [each["grad/start"][0] / 2 for each in alone], rtol=1e-9)


@pytest.mark.slow
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
    "name",
    [
        "brusselator_2d",
        "heat_2d",
        "lorenz",
        "neural_ode",
        "three_bodies",
        *(pytest.param(each, marks=pytest.mark.slow) for each in STIFF),
    ],
)
def test_sizes_are_those_of_the_end_to_a_power_of_ten(name: str) -> None:
    problem = problem_named(name)
    assert len(problem.sizes) == len(problem.start)
    ends = np.abs(reference_end(problem)).reshape(len(problem.sizes), -1).max(axis=1)
    assert (np.abs(np.log10(ends / problem.sizes)) < 1).all()


@pytest.mark.slow_but("torch", "neural_ode", "van_der_pol")
@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_library_has_the_rates_of_the_reference(name: str, library: str) -> None:
    arrays = pytest.importorskip(library, reason="`make test` installs it and runs this")
    problem, spec = problem_named(name), import_module(f"fairlap.bench_models.{name}.spec")
    states = problem.flat_sizes * draw_inputs(find(name).spec, 3, seed=1)[STATE]
    weights = weights_of(problem)
    by_item = InNumPy(spec).rates(weights)
    in_numpy = np.array([np.asarray(by_item(1.0, state)) for state in states])
    model = import_module(f"fairlap.bench_models.initial_value_problems.{library}_model")
    rates = model.Implementation(spec).rates
    if library == "jax":
        got = _in_jax(arrays, rates(weights), states)
    else:
        held = {name: arrays.from_numpy(each) for name, each in weights.items()}
        got = rates(held)(1.0, arrays.from_numpy(states)).numpy()
    np.testing.assert_allclose(got, in_numpy, rtol=1e-12, atol=1e-12 * np.abs(in_numpy).max())


def _in_jax(jax: Any, rates: Any, states: Array) -> Array:
    with jax.enable_x64(True):
        return np.array([np.asarray(rates(1.0, jax.numpy.asarray(state))) for state in states])
