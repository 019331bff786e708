"""With fixed steps every solver converges with its published order, on Euler's equations of a turning body.

Their solution is known: Jacobi's elliptic functions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.initial_value_problems.numpy_model import Implementation as InNumPy
from fairlap.bench_models.initial_value_problems.problem import Problem
from fairlap.frameworks.solvers import diffrax as in_diffrax
from fairlap.frameworks.solvers import scipy as in_scipy
from fairlap.frameworks.solvers import tensorflow_probability as in_tensorflow
from fairlap.frameworks.solvers import torchdiffeq as in_torchdiffeq
from fairlap.frameworks.solvers.solver_library import Inputs
from scipy.special import ellipj  # type: ignore[import-untyped,unused-ignore]

_FLATNESS = 0.51


def _turning(_time: Any, components: Any, _arrays: Any) -> tuple[Any, ...]:
    first, second, third = components
    return second * third, -first * third, -_FLATNESS * first * second


BODY = Problem("body", "", "", _turning, np.array((0.0, 1.0, 1.0)), 8.0, (1.0, 1.0, 1.0), stiff=False)
SPEC: Any = SimpleNamespace(PROBLEM=BODY)
START = BODY.start[None]
ANY = 1e3  # a tolerance that no step exceeds
WITHIN = 0.2

Solve = Callable[[float], npt.NDArray[np.float64]]


def exact() -> npt.NDArray[np.float64]:
    sine, cosine, delta, _ = ellipj(BODY.end_time, _FLATNESS)
    return np.array([sine, cosine, delta])


def order_of(solve: Solve, steps: tuple[int, ...]) -> float:
    """Fit the slope of the logarithm of the error over that of the step."""
    right = exact()
    lengths = np.array([BODY.end_time / count for count in steps])
    errors = [float(np.linalg.norm(solve(float(length)) - right)) for length in lengths]
    assert min(errors) > 1e-12  # above rounding
    return float(np.polyfit(np.log(lengths), np.log(errors), 1)[0])


def _with_scipy(solver: str, length: float) -> npt.NDArray[np.float64]:
    rates = InNumPy(SPEC).rates()
    inputs = Inputs(START, START, ANY, ANY)
    found = in_scipy.solved(BODY, rates, solver, inputs, first_step=length, max_step=length)
    end: npt.NDArray[np.float64] = found.end[0]
    return end


@pytest.mark.parametrize(
    ("solver", "order", "steps"),
    [("RK23", 3, (100, 200, 400)), ("RK45", 5, (50, 100, 200)), ("DOP853", 8, (12, 16, 24))],
)
def test_of_scipy(solver: str, order: int, steps: tuple[int, ...]) -> None:
    assert order_of(lambda length: _with_scipy(solver, length), steps) == pytest.approx(order, abs=WITHIN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "order", "steps"),
    [
        ("adaptive_heun", 2, (200, 400, 800)),
        ("fehlberg2", 2, (200, 400, 800)),
        ("bosh3", 3, (100, 200, 400)),
        ("dopri5", 5, (50, 100, 200)),
        ("dopri8", 8, (12, 16, 24)),
    ],
)
def test_of_torchdiffeq(solver: str, order: int, steps: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="`make test-slow` installs it and runs this")
    pytest.importorskip("torchdiffeq", reason="`make test-slow` installs it and runs this")
    from fairlap.bench_models.initial_value_problems.torch_model import Implementation

    rates = Implementation(SPEC).rates()
    times = torch.tensor([0.0, BODY.end_time], dtype=torch.float64)
    given: Any = SimpleNamespace(
        start=torch.from_numpy(START), state=torch.from_numpy(START), relative=ANY, absolute=ANY
    )

    def solve(length: float) -> npt.NDArray[np.float64]:
        counted = in_torchdiffeq.Counted(rates)
        found = in_torchdiffeq.solved(counted, solver, times, given, first_step=length, max_step=length)
        end: npt.NDArray[np.float64] = found.end[0].numpy()
        return end

    assert order_of(solve, steps) == pytest.approx(order, abs=WITHIN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "order", "steps"),
    [
        ("Heun", 2, (200, 400, 800)),
        ("Bosh3", 3, (100, 200, 400)),
        ("Kvaerno3", 3, (100, 200, 400)),
        ("Kvaerno4", 4, (50, 100, 200)),
        ("Kvaerno5", 5, (50, 100, 200)),
        ("Tsit5", 5, (50, 100, 200)),
        ("Dopri5", 5, (50, 100, 200)),
        ("Dopri8", 8, (12, 16, 24)),
    ],
)
def test_of_diffrax(solver: str, order: int, steps: tuple[int, ...]) -> None:
    diffrax = pytest.importorskip("diffrax", reason="`make test-slow` installs it and runs this")
    optimistix = pytest.importorskip("optimistix", reason="diffrax brings it")
    import jax
    from fairlap.bench_models.initial_value_problems.jax_model import Implementation

    implicit = solver.startswith("Kvaerno")
    roots = {"root_finder": optimistix.Newton(rtol=1e-10, atol=1e-11)} if implicit else {}
    method = getattr(diffrax, solver)(**roots)

    def solve(length: float) -> npt.NDArray[np.float64]:
        found = jax.jit(in_diffrax.solve_with(BODY, Implementation(SPEC).rates, method, 1, length))(
            {}, START, START, ANY, ANY
        )
        end: npt.NDArray[np.float64] = np.asarray(found.end[0])
        return end

    with jax.enable_x64(True):
        assert order_of(solve, steps) == pytest.approx(order, abs=WITHIN)


@pytest.mark.slow
def test_of_tensorflow_probability() -> None:
    """On y' = 3 y cos t, y = exp(3 sin t): with few steps, since its coefficients are rounded to single precision."""
    tf = pytest.importorskip("tensorflow", reason="`make test-slow` installs it and runs this")
    pytest.importorskip("tensorflow_probability", reason="`make test-slow` installs it and runs this")
    one, any_tolerance = tf.ones((1, 1), tf.float64), tf.constant(ANY, tf.float64)
    lengths = [BODY.end_time / steps for steps in (40, 60, 80)]
    errors = []
    for length in lengths:
        fixed = {"first_step_size": length, "min_step_size_factor": 1.0, "max_step_size_factor": 1.0}
        solving = in_tensorflow.solve_with(
            BODY, lambda _: lambda time, state: 3 * state * tf.cos(time), "DormandPrince", **fixed
        )
        found = tf.function(solving, autograph=False)({}, one, one, any_tolerance, any_tolerance)
        errors.append(abs(found.end.numpy().item() - np.exp(3 * np.sin(BODY.end_time))))
    assert min(errors) > 1e-5  # above that rounding
    assert np.polyfit(np.log(lengths), np.log(errors), 1)[0] == pytest.approx(5, abs=WITHIN)
