"""What TensorFlow Probability's solvers are asked for: gradients, counts of steps, and an end where they give up."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT, CHANGE, STATE, TOLERANCE
from fairlap.frameworks.solvers import tensorflow_probability as in_tensorflow
from machine_marks import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BIAS = "second.bias"
tf = pytest.importorskip("tensorflow", reason="`make test-slow` installs it and runs this")
needs("tensorflow_probability", reason="`make test-slow` installs it and runs this")


def problem_and_rates(name: str) -> tuple[Any, Any]:
    from fairlap.bench_models.initial_value_problems.tensorflow_model import Implementation

    spec = import_module(f"fairlap.bench_models.{name}.spec")
    return spec.PROBLEM, Implementation(spec).rates


def arguments(problem: Any, relative: float) -> tuple[Any, ...]:
    shape = (1, problem.numbers)
    arrays = {CHANGE: np.zeros(shape), STATE: np.ones(shape), TOLERANCE: np.full(1, relative)}
    return in_tensorflow.arguments_of(problem, {}, arrays)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_is_that_of_finite_differences_through_the_solver(compiled: bool) -> None:
    problem, rates = problem_and_rates("neural_ode")
    drawn = np.random.default_rng(0)
    weights = {each.name: tf.constant(drawn.normal(0.0, 0.3, each.shape)) for each in problem.weights}
    solve = in_tensorflow.solve_with(problem, rates, "DormandPrince")
    step = tf.function(in_tensorflow.with_gradient(problem, solve), autograph=False, jit_compile=compiled)
    _, start, *others = arguments(problem, 1e-9)
    middle, apart = step(weights, start, *others).gradients, 1e-4

    def slope(of_weights: Any, of_start: Any) -> float:
        losses = [
            float(step({**weights, BIAS: weights[BIAS] + way * of_weights}, start + way * of_start, *others).loss)
            for way in (apart, -apart)
        ]
        return (losses[0] - losses[1]) / (2 * apart)

    moved = np.eye(problem.numbers)[2]
    assert float(middle[BY_START][0, 2]) == pytest.approx(slope(0.0, moved), rel=1e-4)
    assert float(middle[BY_WEIGHT + BIAS][2]) == pytest.approx(slope(moved, 0.0), rel=1e-4)


def test_accepted_steps_are_counted_and_rejected_ones_are_evaluations_alone() -> None:
    """Where no step is rejected, each evaluates the rates six times."""
    problem, rates = problem_and_rates("lorenz")
    given = arguments(problem, 1e3)
    fixed = {"first_step_size": 0.011, "min_step_size_factor": 1.0, "max_step_size_factor": 1.0}
    found = in_tensorflow.solve_with(problem, rates, "DormandPrince", **fixed)(*given)
    steps = in_tensorflow.accepted_steps(problem, rates, **fixed)(*given)
    assert int(steps) == int(np.ceil(5 / 0.011))
    assert int(found.evaluations) == 6 * int(steps)
    given = arguments(problem, 1e-6)
    every = tf.function(in_tensorflow.solve_with(problem, rates, "DormandPrince"), autograph=False)(*given)
    accepted = tf.function(in_tensorflow.accepted_steps(problem, rates), autograph=False)(*given)
    assert int(accepted) < int(every.evaluations) / 6


@pytest.mark.parametrize("solver", ["DormandPrince", "BDF"])
def test_a_solver_gives_up_after_so_many_steps(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(in_tensorflow._MOST_STEPS, solver, 20)
    problem, rates = problem_and_rates("robertson")
    given = arguments(problem, 1e-6)
    function = tf.function(in_tensorflow.solve_with(problem, rates, solver), autograph=False)
    found = in_tensorflow.solved(function, partial(in_tensorflow.gave_up, problem, rates, ""), given)
    assert np.isnan(np.asarray(found.end)).all()
    assert np.isfinite(np.asarray(found.rates)).all()
    assert found.evaluations is not None


def test_xla_leaves_out_the_limit_of_dormand_prince_so_a_graph_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(in_tensorflow._MOST_STEPS, "DormandPrince", 20)
    problem, rates = problem_and_rates("lorenz")
    given, solve = arguments(problem, 1e-6), in_tensorflow.solve_with(problem, rates, "DormandPrince")
    compiled = tf.function(solve, autograph=False, jit_compile=True)(*given)
    assert np.isfinite(compiled.end.numpy()).all()
    assert int(compiled.evaluations) > 20 * 6
    assert not in_tensorflow.is_limited(tf.function(solve, autograph=False), given)
    assert in_tensorflow.is_limited(None, given)
