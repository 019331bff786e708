"""SciPy's ``solve_ivp``: ``scipy`` is LSODA, which changes its method where a problem is stiff; ``scipy:Radau``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fairlap.bench_models.initial_value_problems.problem import Problem
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.solvers.solver_library import (
    MOST_EVALUATIONS,
    GaveUp,
    Inputs,
    Solved,
    SolverLibrary,
    float32_weights,
    float64_weights,
    inputs_of,
    limit_in_force,
    outputs_of,
    precision_of,
)
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

_DIFFERENCES = ("Radau", "BDF")
"""Solvers that take differences for the Jacobian, whose evaluations SciPy leaves out of its count."""


class SciPy(SolverLibrary):
    name = "scipy"
    packages: ClassVar[tuple[str, ...]] = ("scipy==1.17.1",)
    module = "scipy"
    implementation = "numpy"
    variants: ClassVar[tuple[str, ...]] = ("", "LSODA", "RK23", "RK45", "DOP853", "Radau", "BDF")
    recommended = ("LSODA", "LSODA")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OPENBLAS_NUM_THREADS": str(settings.threads), "OMP_NUM_THREADS": str(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import scipy.integrate  # type: ignore[import-untyped,unused-ignore]
        self._version = str(scipy.__version__)
        with phase("build"):
            model = work.implementation(self.implementation)
            weights = float64_weights(work.weights)
            problem, rates = model.problem, model.rates(weights)
            solver = self.solver_for(problem, wanted)

        def bind(arrays: Arrays) -> Callable[[], Solved]:
            return partial(solved, problem, rates, solver, inputs_of(problem, arrays))

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs_of,
            weights=partial(float32_weights, weights),
            in_force={
                "threads": f"{wanted.threads} requested, not readable",
                "precision": precision_of(inputs_of(problem, work.inputs).start),
                "solver": solver,
                **limit_in_force(MOST_EVALUATIONS, "evaluations of an item"),
            },
            compilation=lambda: Compilation(bind=bind),
        )


def limited(rates: Callable[[float, Any], Any]) -> Callable[[float, Any], Any]:
    """Raise GaveUp in the evaluation after the last allowed one: SciPy has no limit, and on a stiff problem no end."""
    made = 0

    def counted(time: float, state: Any) -> Any:
        nonlocal made
        made += 1
        if made > MOST_EVALUATIONS:
            raise GaveUp
        return rates(time, state)

    return counted


def solved(problem: Problem, rates: Callable[[float, Any], Any], solver: str, inputs: Inputs, **more: float) -> Solved:
    """Solve item by item, since the items of a batch need steps of different length. ``more`` are options of it."""
    from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]

    ends, steps, evaluations = [], 0, 0
    for start in inputs.start:
        try:
            found = solve_ivp(
                limited(rates),
                (0.0, problem.end_time),
                start,
                solver,
                rtol=inputs.relative,
                atol=inputs.absolute,
                **more,
            )
        except GaveUp:
            ends.append(np.full(start.shape, np.nan))
            evaluations += MOST_EVALUATIONS
            continue
        ends.append(found.y[:, -1] if found.status == 0 else np.full(start.shape, np.nan))
        steps += len(found.t) - 1
        evaluations += found.nfev + (found.njev * start.size if solver in _DIFFERENCES else 0)
    items = len(ends)
    at_state = [rates(problem.end_time, state) for state in inputs.state]
    return Solved(np.array(ends), np.array(at_state), steps / items, evaluations / items)
