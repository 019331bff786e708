"""Lorenz's equations as users of SciPy and of Diffrax solve them: ``solving.py with_scipy STARTS``.

A turn answers with the tolerance, the error at the end and the time of each solve, one after the other.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import cycle, product
from time import perf_counter_ns
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from timing import REFILL_S, TURN_S, WARM_UP_S, answer, run, turns, warm_up

TOLERANCES = (1e-6, 1e-8, 1e-10)
END = 5.0
SIZES = np.array((7.0, 7.0, 24.0))  # of the components at the end
STARTS = np.load(sys.argv[2])

Solve = Callable[[Any, float], Any]


def lorenz(_time: float, state: np.ndarray) -> tuple[float, float, float]:
    x, y, z = state
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


def in_scipy(start: np.ndarray, tolerance: float, method: str = "LSODA", least: float = SIZES.min()) -> np.ndarray:
    return solve_ivp(lorenz, (0.0, END), start, method=method, rtol=tolerance, atol=tolerance * least).y[:, -1]


def with_scipy() -> None:
    time_solves(in_scipy, STARTS)


def with_diffrax() -> None:
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    term = diffrax.ODETerm(lambda time, state, _: jnp.stack(lorenz(time, state)))

    @jax.jit
    def solve(start: Any, relative: Any, absolute: Any) -> Any:
        steps = diffrax.PIDController(rtol=relative, atol=absolute)
        found = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, END, None, start, stepsize_controller=steps, max_steps=50_000
        )
        return found.ys[-1]

    bounds = {each: jax.device_put((each, each * SIZES.min())) for each in TOLERANCES}
    time_solves(
        lambda start, tolerance: jax.block_until_ready(solve(start, *bounds[tolerance])), jax.device_put([*STARTS])
    )


def time_solves(solve: Solve, starts: Any) -> None:
    exact = [in_scipy(start, 1e-13, "DOP853") for start in STARTS]
    calls = {(each, number): partial(solve, starts[number], each) for each, number in product(TOLERANCES, (0, 1))}
    errors = {}
    for tolerance in TOLERANCES:
        apart = [(np.asarray(calls[tolerance, number]()) - exact[number]) / SIZES for number in (0, 1)]
        errors[tolerance] = float(np.sqrt(np.mean(np.square(apart))))
    in_turn = cycle(calls.values())
    warm_up(lambda: next(in_turn)(), WARM_UP_S)
    for _ in turns():
        warm_up(lambda: next(in_turn)(), REFILL_S)
        found: list[float] = []
        until_ns = perf_counter_ns() + int(TURN_S * 1e9)
        while not found or perf_counter_ns() < until_ns:
            for (tolerance, _number), call in calls.items():
                began_ns = perf_counter_ns()
                call()
                found += [tolerance, errors[tolerance], perf_counter_ns() - began_ns]
        answer(found)


if __name__ == "__main__":
    run({"with_scipy": with_scipy, "with_diffrax": with_diffrax})
