"""An initial value problem: the rates of its components, where it starts and ends, and how large they are there.

It is a model whose call solves it once, from initial values that the inputs move, at the tolerance that they name. The
call also evaluates the rates once at a drawn state, which proves that every contestant solves the same equations. In
mode solve-grad it also gives a loss of the end, and its gradient by the initial values and by the weights, if any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from operator import methodcaller
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.spec import BATCH, Constant, Spec, Tensor, Tolerance, Uniform, Weight
from fairlap.request.work import Mode

CHANGE, STATE, TOLERANCE = "change", "state", "tolerance"
"""The inputs: by which shares initial values are moved, a state in units of the sizes, and the relative tolerance."""

END, RATES = "end", "rates"
"""The outputs: the state at the end, and the rates at the drawn state."""

LOSS, BY_START, BY_WEIGHT = "loss", "grad/start", "grad/weights/"
"""In mode solve-grad also: the loss, and its gradient by the initial values and by each weight."""

SOLVE_GRAD: Mode = "solve-grad"

USUAL_TOLERANCE = 1e-6
_LARGEST_ERROR = 0.05  # at the usual tolerance; what is judged is measured at many

Array = npt.NDArray[np.float64]
Rates = Callable[..., tuple[Any, ...]]
NO_WEIGHTS: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Problem:
    """``rates`` takes the time, the components, and the module of their arrays: numpy, jax.numpy or torch.

    Of TensorFlow it is what has their names. A component is a number, or a field on a grid. Its axes are the last ones:
    there may be one of a batch before them. Where the problem has weights, ``rates`` takes them by name as ``weights``.
    """

    name: str
    task: str
    published: str
    rates: Rates
    start: Array  # a row for each component
    end_time: float
    sizes: tuple[float, ...]  # of each component at the end: errors are divided by them
    stiff: bool
    spread: float = 0.02  # initial values are moved by up to this share
    exact: Callable[[Array], Array] | None = None  # the state at the end from that at the start, where it is known
    weights: tuple[Weight, ...] = ()

    @property
    def numbers(self) -> int:
        return self.start.size

    @cached_property
    def flat_start(self) -> Array:
        return self.start.reshape(-1)

    @cached_property
    def flat_sizes(self) -> Array:
        return np.repeat(np.array(self.sizes), self.numbers // len(self.sizes))

    @property
    def smallest_size(self) -> float:
        """An absolute tolerance is the relative one times this."""
        return min(self.sizes)

    def rates_with(self, weights: Mapping[str, Any]) -> Rates:
        return partial(self.rates, weights=weights) if self.weights else self.rates

    def loss(self, end: Any, sizes: Any, mean: Callable[[Any], Any] = methodcaller("mean")) -> Any:
        """Take the mean square of the state at the end, in units of the ``sizes``, in any library."""
        scaled = end / sizes
        return mean(scaled * scaled)

    def spec(self) -> Spec:
        state = (BATCH, self.numbers)
        return Spec(
            name=self.name,
            task=self.task,
            inputs=(
                Tensor(CHANGE, state, Uniform(-self.spread, self.spread), "float64"),
                Tensor(STATE, state, Uniform(-1.0, 1.0), "float64"),
                Tensor(TOLERANCE, (BATCH,), Constant(USUAL_TOLERANCE), "float64"),
            ),
            outputs=(
                Tensor(END, state, Constant(0.0), "float64"),
                Tensor(RATES, state, Constant(0.0), "float64"),
            ),
            weights=self.weights,
            parameters=sum(math.prod(weight.shape) for weight in self.weights),
            gmacs_per_item=None,
            published=self.published,
            modes=("solve",) if self.stiff else ("solve", SOLVE_GRAD),
            precisions=("fp64",),
            tolerances={
                "fp64": Tolerance(cosine=0.99, absolute=_LARGEST_ERROR * self.smallest_size, relative=_LARGEST_ERROR)
            },
        )


class OfProblem:
    """What the implementations in all libraries have; each adds ``rates``, of flat states, with given weights."""

    takes_other_sizes = True  # its calls take inputs that it was not prepared with

    def __init__(self, spec: ModuleType) -> None:
        self.problem: Problem = spec.PROBLEM
