"""Compare a contestant's training steps with the reference's, and find out what it did instead.

How far a right contestant may end from the float64 reference is not guessed: the same steps are taken in float32, and
in float64 from weights and inputs that were moved by what float32 rounds away, and contestants may end some times as
far away as those do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.models.spec import UNIT_ROUNDOFF, Spec
from fairlap.models.training_reference import LOSS, STEP, Batch, Mistake, State, steps_of
from fairlap.request.training import AdamW, Schedule, Training

Array = npt.NDArray[Any]
Forward = Callable[..., Mapping[str, Any]]

TIMES_THE_ROUNDING = 16.0
_NUDGED_RUNS = 2
_TIMES_MORE_OF_ONE = 8.0
_AS_NEAR = 0.02  # to a mistake, as a share of the way to it from the steps that were asked for


@dataclass(frozen=True)
class Trained:
    """What training steps of the reference gave, by the names of ``State.named`` and "loss", and how far from each
    a right contestant may be."""

    expected: Mapping[str, Array]
    allowed: Mapping[str, float]  # norms of differences


@dataclass(frozen=True)
class Exercise:
    """The steps that are asked of a contestant."""

    spec: Spec
    forward: Forward
    training: Training
    start: State
    batches: Sequence[Batch]
    mistake: Mistake = Mistake()  # noqa: RUF009  (frozen)

    def taken(self, dtype: Any = np.float64) -> dict[str, Array]:
        losses, end = steps_of(self.spec, self.forward, self.training, self.start, self.batches, dtype, self.mistake)
        state = end.named()
        del state[STEP]  # a framework need not count
        return {LOSS: np.asarray(losses[-1]), **state}


def trained(exercise: Exercise, seed: int = 0) -> Trained:
    expected = exercise.taken()
    others = [exercise.taken(np.float32)]
    others += [_nudged(exercise, np.random.default_rng([seed, number])).taken() for number in range(_NUDGED_RUNS)]
    allowed = {}
    for name, array in expected.items():
        farthest = max(float(np.linalg.norm(other[name].astype(np.float64) - array)) for other in others)
        stored = UNIT_ROUNDOFF["fp32"] * float(np.linalg.norm(array))  # of a result that is kept in float32
        allowed[name] = TIMES_THE_ROUNDING * (farthest + stored)
        if name == LOSS:  # one number may be near by chance, and a small one is a difference of large scores
            allowed[name] = _TIMES_MORE_OF_ONE * max(allowed[name], TIMES_THE_ROUNDING * UNIT_ROUNDOFF["fp32"])
    return Trained(expected, allowed)


ALLOWED = "allowed/"


def written(found: Trained) -> dict[str, Array]:
    """As one mapping, for a file."""
    return {**found.expected, **{ALLOWED + name: np.asarray(value) for name, value in found.allowed.items()}}


def as_trained(arrays: Mapping[str, Array]) -> Trained:
    """What ``written`` made."""
    return Trained(
        {name: array for name, array in arrays.items() if not name.startswith(ALLOWED)},
        {name.removeprefix(ALLOWED): float(array) for name, array in arrays.items() if name.startswith(ALLOWED)},
    )


def distances(found: Trained, got: Mapping[str, Array]) -> dict[str, float]:
    """By array, as a multiple of what is allowed; infinite for one that is missing, misshapen or not finite."""
    return {name: _distance(array, got.get(name), found.allowed[name]) for name, array in found.expected.items()}


def _distance(expected: Array, got: Array | None, allowed: float) -> float:
    if got is None or got.shape != expected.shape or not np.isfinite(got).all():
        return float("inf")
    return float(np.linalg.norm(got.astype(np.float64) - expected)) / max(allowed, 1e-300)


def what_it_did(exercise: Exercise, got: Mapping[str, Array]) -> str:
    """Which other training ends where this contestant did; empty if none that is known does."""
    expected = exercise.taken()
    got = {name: array for name, array in got.items() if name in expected and array.shape == expected[name].shape}
    if not all(np.isfinite(array).all() for array in got.values()):
        return "its loss or its weights are not finite"
    start = exercise.start.named()
    # The loss is left out: an update that comes too late leaves it right.
    states = {name: array for name, array in expected.items() if name != LOSS}
    sizes = {name: float(np.linalg.norm(array - start.get(name, 0.0))) for name, array in states.items()}

    def apart(one: Mapping[str, Array], other: Mapping[str, Array]) -> float:
        """Each array counts by how far the steps asked for move it."""
        squares = (
            np.sum(np.square(one[name] - other[name].astype(np.float64))) / max(size, 1e-300) ** 2
            for name, size in sizes.items()
            if name in one and name in other
        )
        return float(np.sqrt(sum(squares)))

    if all(np.array_equal(got.get(name, array), array) for name, array in start.items()):
        return "it does not train at all"
    away = apart(expected, got)
    for what, other in _mistakes(exercise):
        taken = other.taken()
        if apart(taken, got) < _AS_NEAR * min(away, apart(taken, expected)):
            return what
    return ""


def _mistakes(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    yield from _of_the_optimizer(exercise)
    yield from _of_the_batches(exercise)
    if exercise.spec.has_statistics():

        def as_in_inference(weights: Any, inputs: Any, _statistics: Any) -> Any:
            return exercise.forward(weights, inputs)

        yield "it normalises by the running averages, as in inference", replace(exercise, forward=as_in_inference)


def _of_the_optimizer(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    optimizer, schedule = exercise.training.optimizer, exercise.training.schedule

    def by(**changes: Any) -> Exercise:
        return replace(exercise, training=Training(msgspec.structs.replace(optimizer, **changes), schedule))

    for times in (2.0, 0.5, 10.0, 0.1):
        yield f"its learning rate is {times:g} times the one asked for", by(lr=times * optimizer.lr)
    yield "it adds up its gradients twice", replace(exercise, mistake=Mistake(gradient_times=2.0))
    if schedule != Schedule():
        constant = replace(exercise, training=Training(optimizer))
        yield "it does not follow the schedule of the learning rate", constant
    if optimizer.decay:
        yield "it does not decay its weights", by(decay=0.0)
    else:
        yield "it decays its weights by 0.01, which was not asked for", by(decay=0.01)
    if isinstance(optimizer, AdamW):
        yield from _of_adam(exercise, optimizer, by)
    elif optimizer.momentum:
        yield "it trains without momentum", by(momentum=0.0)


def _of_adam(exercise: Exercise, optimizer: AdamW, by: Callable[..., Exercise]) -> Iterator[tuple[str, Exercise]]:
    for times in (10.0, 0.1, 100.0, 1e5):
        yield f"its epsilon is {times:g} times the one asked for", by(epsilon=times * optimizer.epsilon)
    yield "its moving averages have other factors", by(beta2=0.99)
    if optimizer.decay:
        coupled = Mistake(decay_in_gradient=optimizer.decay)
        what = "its weight decay is added to the gradient instead of being kept apart"
        yield what, replace(by(decay=0.0), mistake=coupled)


def _of_the_batches(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    first, *others = exercise.batches
    if not others:
        return
    yield "it repeats a batch", replace(exercise, batches=[first] * len(exercise.batches))
    yield "it skips a batch", replace(exercise, batches=[*others, first])
    yield "it takes one step too few", replace(exercise, batches=exercise.batches[:-1])


def _nudged(exercise: Exercise, rng: np.random.Generator) -> Exercise:
    """Weights and inputs moved by what float32 rounds away."""

    def moved(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        nudged: Array = array.astype(np.float64) * (1 + UNIT_ROUNDOFF["fp32"] * rng.choice([-1.0, 1.0], array.shape))
        return nudged

    start = State(
        {name: moved(array) for name, array in exercise.start.weights.items()},
        exercise.start.kept,
        exercise.start.step,
    )
    batches = [
        Batch({name: moved(array) for name, array in batch.inputs.items()}, batch.labels) for batch in exercise.batches
    ]
    return replace(exercise, start=start, batches=batches)
