"""Training steps of the reference: gradients by the chain rule through its NumPy code, and the optimizer's formulas.

The same steps are taken in float64 and, to see what rounding does to them, in float32 and from weights that were
moved by what float32 rounds away. How far those end from the float64 ones says how far a right contestant may end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError
from fairlap.models.arrays import Labels
from fairlap.models.checks.differentiation import gradients
from fairlap.models.checks.losses import loss_of
from fairlap.models.spec import Spec
from fairlap.request.fields.training import Sgd, Training

Array = npt.NDArray[Any]

LOSS, WEIGHT, BUFFER, MEAN, SQUARE = "loss", "weight/", "buffer/", "mean/", "square/"
STEP = "step"


@dataclass(frozen=True)
class Batch:
    inputs: Mapping[str, Array]
    labels: Labels | None


@dataclass(frozen=True)
class Mistake:
    """What steps do wrong on purpose, to be compared with a contestant's."""

    gradient_times: float = 1.0
    decay_in_gradient: float = 0.0
    accumulates: bool = False  # the gradients of all steps so far


@dataclass
class State:
    """Weights, what the optimizer keeps for each trained one, and the number of steps taken."""

    weights: dict[str, Array]
    kept: dict[str, dict[str, Array]] = field(default_factory=dict)  # by "buffer/", "mean/" or "square/"
    step: int = 0

    def named(self) -> dict[str, Array]:
        """As flat names: what a contestant reads out of its framework."""
        found = {WEIGHT + name: array for name, array in self.weights.items()}
        for kind, arrays in self.kept.items():
            found |= {kind + name: array for name, array in arrays.items()}
        return found | {STEP: np.asarray(self.step, dtype=np.float64)}


@dataclass(frozen=True)
class Slopes:
    """Of one step: its loss, the gradients by the trained weights, and the averages that its forward pass moves."""

    loss: float
    gradients: dict[str, Array]
    averages: dict[str, Array]


class NotComputed(FairlapError):
    """The gradients of a user's model could not be computed. The message gives the reason."""

    code = "E_SOURCE"


class OwnSlopes(ABC):
    """In place of a reference's ``forward``: gradients that something else than the chain rule here computes."""

    @abstractmethod
    def slopes(self, weights: Mapping[str, Array], batch: Batch, *, training: bool) -> Slopes:
        """Compute them in the precision of the weights, of the model as it is in training or in inference."""

    def outputs(self, weights: Mapping[str, Array], inputs: Mapping[str, Array], batch: int) -> dict[str, Array]:
        """Compute the outputs of all items in inference and in float64, in batches of one size."""
        raise NotImplementedError

    def in_inference(self) -> OwnSlopes:
        """Compute those of steps that leave the model as it is in inference."""
        return _InInference(self)


class _InInference(OwnSlopes):
    def __init__(self, of: OwnSlopes) -> None:
        self._of = of

    def slopes(self, weights: Mapping[str, Array], batch: Batch, *, training: bool) -> Slopes:
        return self._of.slopes(weights, batch, training=False)

    def outputs(self, weights: Mapping[str, Array], inputs: Mapping[str, Array], batch: int) -> dict[str, Array]:
        return self._of.outputs(weights, inputs, batch)


class FirstSlopes:
    """Those of first steps, kept for others that begin with the same state, batch and code."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[Any, ...], str, Slopes]] = []

    def of(self, begin: tuple[Any, ...], dtype: str, compute: Callable[[], Slopes]) -> Slopes:
        for other, kind, slopes in self._kept:
            if kind == dtype and all(one is two for one, two in zip(begin, other, strict=True)):
                return slopes
        self._kept.append((begin, dtype, compute()))
        return self._kept[-1][2]


def state_named(arrays: Mapping[str, Array]) -> State:
    """Read what ``State.named`` wrote."""
    state = State({}, step=int(arrays[STEP]))
    for name, array in arrays.items():
        for kind in (BUFFER, MEAN, SQUARE):
            if name.startswith(kind):
                state.kept.setdefault(kind, {})[name.removeprefix(kind)] = array
        if name.startswith(WEIGHT):
            state.weights[name.removeprefix(WEIGHT)] = array
    return state


def kept_by(training: Training) -> tuple[str, ...]:
    if isinstance(training.optimizer, Sgd):
        return (BUFFER,) if training.optimizer.momentum else ()
    return (MEAN, SQUARE)


def steps_of(
    spec: Spec,
    forward: Any,
    training: Training,
    state: State,
    batches: Sequence[Batch],
    dtype: Any = np.float64,
    mistake: Mistake = Mistake(),
    first_slopes: FirstSlopes | None = None,
    exchanged: Callable[[Slopes], Slopes] | None = None,
) -> tuple[list[float], State]:
    """Train, and return the loss of each step, before its update, and the state after the last one.

    ``first_slopes`` is kept between calls that begin with the same weights and the same batch. ``exchanged`` makes of
    the gradients those that are followed, where other processes share the steps.
    """
    start = state
    state = State(
        {name: array.astype(dtype) for name, array in state.weights.items()},
        {kind: {name: array.astype(dtype) for name, array in of.items()} for kind, of in state.kept.items()},
        state.step,
    )
    losses = []
    sums: dict[str, Array] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for number, batch in enumerate(batches):
            compute = partial(_slopes, spec, forward, state, batch, dtype)
            if number or first_slopes is None:
                slopes = compute()
            else:
                slopes = first_slopes.of((start, batch, forward), np.dtype(dtype).name, compute)
            if mistake.accumulates:
                sums = {name: sums.get(name, dtype(0.0)) + array for name, array in slopes.gradients.items()}
                slopes = replace(slopes, gradients=sums)
            _take(training, state, slopes if exchanged is None else exchanged(slopes), dtype, mistake)
            losses.append(slopes.loss)
    return losses, state


def _take(training: Training, state: State, slopes: Slopes, dtype: Any, mistake: Mistake) -> None:
    for name, slope in slopes.gradients.items():
        slope = dtype(mistake.gradient_times) * slope
        if mistake.decay_in_gradient:
            slope = slope + dtype(mistake.decay_in_gradient) * state.weights[name]
        _update(training, state, name, slope, dtype)
    state.weights |= slopes.averages
    state.step += 1


def _slopes(spec: Spec, forward: Any, state: State, batch: Batch, dtype: Any) -> Slopes:
    inputs = {name: each.astype(dtype) if each.dtype.kind == "f" else each for name, each in batch.inputs.items()}
    if isinstance(forward, OwnSlopes):
        return forward.slopes(state.weights, Batch(inputs, batch.labels), training=True)
    trained = {weight.name: state.weights[weight.name] for weight in spec.weights if weight.trained}
    fixed = {name: array for name, array in state.weights.items() if name not in trained}
    averages: dict[str, Array] = {}
    further = (averages,) if fixed else ()  # a model without running statistics takes none

    def loss(weights: Mapping[str, Any]) -> Any:
        outputs = forward({**fixed, **weights}, inputs, *further)
        return loss_of(spec.loss, outputs[spec.outputs[0].name], batch.labels)

    found, slopes = gradients(loss, trained)
    return Slopes(
        found,
        {name: slope.astype(dtype) for name, slope in slopes.items()},
        {name: array.astype(dtype) for name, array in averages.items()},
    )


def _update(training: Training, state: State, name: str, slope: Array, dtype: Any) -> None:
    optimizer, weight = training.optimizer, state.weights[name]
    rate = dtype(training.rate_at(state.step))
    if isinstance(optimizer, Sgd):
        if optimizer.decay:
            slope = slope + dtype(optimizer.decay) * weight
        if optimizer.momentum:
            buffers = state.kept.setdefault(BUFFER, {})
            slope = slope + dtype(optimizer.momentum) * buffers.get(name, np.zeros_like(weight))
            buffers[name] = slope
        state.weights[name] = weight - rate * slope
        return
    means, squares = state.kept.setdefault(MEAN, {}), state.kept.setdefault(SQUARE, {})
    beta1, beta2 = optimizer.beta1, optimizer.beta2
    means[name] = dtype(beta1) * means.get(name, np.zeros_like(weight)) + dtype(1 - beta1) * slope
    squares[name] = dtype(beta2) * squares.get(name, np.zeros_like(weight)) + dtype(1 - beta2) * slope * slope
    mean = means[name] / dtype(1 - beta1 ** (state.step + 1))
    square = squares[name] / dtype(1 - beta2 ** (state.step + 1))
    moved = rate * mean / (np.sqrt(square) + dtype(optimizer.epsilon))
    state.weights[name] = weight - rate * dtype(optimizer.decay) * weight - moved
