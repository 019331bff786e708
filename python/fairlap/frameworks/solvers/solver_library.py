"""What adapters of libraries of solvers share: which solver one takes, and how an answer is read.

A call solves the problem once and evaluates the rates once at a drawn state. It returns the end, these rates, and how
many steps were accepted and evaluations made for an item; where the solver gave up, the end is not-a-number. In mode
solve-grad it also returns the loss of the end and its gradient, which the option ``gradient`` takes in one of two ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlap.bench_models.initial_value_problems.problem import (
    CHANGE,
    END,
    LOSS,
    RATES,
    SOLVE_GRAD,
    STATE,
    TOLERANCE,
    Problem,
)
from fairlap.frameworks.contract import Framework, Settings, Unsupported
from fairlap.models.arrays import Arrays
from fairlap.request.work import PRECISIONS_OF_MODELS, Mode

STEPS, EVALUATIONS = "steps", "evaluations"
"""What an answer has besides the outputs of the model; the second is absent where nothing counts evaluations."""

MOST_STEPS, MOST_EVALUATIONS = 50_000, 100_000
"""After which a solver gives up: the first where its library can be given a limit, the second where it calls Python."""

LIMIT = "limit"
"""The setting in force that says so."""

GRADIENT = "gradient"
DIRECT, ADJOINT = "direct", "adjoint"
"""Ways to a gradient: back through the steps of the solver, or by a second solve of the adjoint equations."""

_PRECISIONS = {"float64": "fp64", "float32": "fp32"}


class Solved(NamedTuple):
    end: Any  # a row for each item
    rates: Any
    steps: Any = None  # accepted, for an item: the mean over a batch
    evaluations: Any = None
    loss: Any = None
    gradients: Any = None  # by the names of the outputs


class GaveUp(ArithmeticError):
    """Raised in the rates, which a solver has called too often."""


@dataclass(frozen=True)
class Inputs:
    """The state of each item at the start and the drawn one, and both tolerances."""

    start: npt.NDArray[np.float64]
    state: npt.NDArray[np.float64]
    relative: float
    absolute: float


class SolverLibrary(Framework):
    modes: ClassVar[tuple[str, ...]] = ("solve",)
    precisions = ("fp64",)
    no_precision: ClassVar = dict.fromkeys(PRECISIONS_OF_MODELS, "differential equations are solved in fp64 here")
    # Those that its documentation recommends: where a problem is not stiff, and where it is.
    recommended: ClassVar[tuple[str, str]]

    @classmethod
    def solver_for(cls, problem: Problem, wanted: Settings) -> str:
        return wanted.variant or cls.recommended[problem.stiff]


def gradient_asked(mode: Mode, wanted: Settings, usual: str = DIRECT) -> str:
    """Return how the gradient is taken; empty where there is none."""
    if mode == SOLVE_GRAD:
        return wanted.options.get(GRADIENT, usual)
    if GRADIENT in wanted.options:
        raise Unsupported(f"{GRADIENT}={wanted.options[GRADIENT]} is for --mode {SOLVE_GRAD}")
    return ""


def float64_weights(weights: Arrays) -> dict[str, npt.NDArray[np.float64]]:
    return {name: array.astype(np.float64) for name, array in weights.items()}


def float32_weights(held: Mapping[str, Any]) -> dict[str, npt.NDArray[np.float32]]:
    """Read them back as they were given, which their float64 holds exactly."""
    return {name: np.asarray(array, np.float32) for name, array in held.items()}


def inputs_of(problem: Problem, arrays: Arrays) -> Inputs:
    """All items of a batch have one tolerance."""
    relative = float(arrays[TOLERANCE][0])
    return Inputs(
        problem.flat_start * (1 + arrays[CHANGE]),
        problem.flat_sizes * arrays[STATE],
        relative,
        relative * problem.smallest_size,
    )


def outputs_of(result: Solved) -> dict[str, npt.NDArray[Any]]:
    found = {END: result.end, RATES: result.rates}
    if result.steps is not None:
        found[STEPS] = result.steps
    if result.evaluations is not None:
        found[EVALUATIONS] = result.evaluations
    if result.gradients is not None:
        found |= {LOSS: result.loss, **result.gradients}
    return {name: np.asarray(value, np.float64) for name, value in found.items()}


def limit_in_force(most: int, of: str) -> dict[str, str]:
    return {LIMIT: f"gives up after {most:,} {of}"}


def precision_of(held: Any) -> str:
    """Of a state as the library holds it."""
    kind = str(held.dtype).removeprefix("torch.")
    return _PRECISIONS.get(kind, kind)
