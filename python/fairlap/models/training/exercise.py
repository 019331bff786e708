"""Steps of training that are asked of contestants, where they end, and how far from there a right contestant may end.

How far is not guessed: the same steps are taken in float32, and in float64 from weights and inputs that were moved by
what float32 rounds away, and contestants may end some times as far away as those do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import UNIT_ROUNDOFF, Spec
from fairlap.models.training.reference import LOSS, STEP, Batch, FirstSlopes, Mistake, State, steps_of
from fairlap.request.fields.training import Training
from fairlap.request.work import Precision

Array = npt.NDArray[Any]
Forward = Callable[..., Mapping[str, Any]]

TIMES_THE_ROUNDING = 16.0
_NUDGED_RUNS, _NUDGED_RUNS_AT_KINKS = 2, 6
_TIMES_MORE_OF_ONE = 8.0
_ROUNDINGS_AT_KINKS = 16.0
_TIMES_THE_KINKS = 2.0
_SHARE_OF_THE_WAY = 0.02


@dataclass(frozen=True)
class Trained:
    """What training steps of the reference gave, and how far from it a right contestant may be.

    Each is by the names of ``State.named`` and "loss".
    """

    expected: Mapping[str, Array]
    allowed: Mapping[str, float]  # norms of differences


@dataclass(frozen=True)
class Exercise:
    """The steps that are asked of a contestant."""

    spec: Spec
    forward: Any  # a reference's Forward, or OwnSlopes
    training: Training
    start: State
    batches: Sequence[Batch]
    mistake: Mistake = Mistake()  # noqa: RUF009  (frozen)
    precision: Precision = "fp32"
    ranks: int = 1  # that share each batch, a part for each
    first_slopes: FirstSlopes = field(default_factory=FirstSlopes, compare=False, repr=False)

    def taken(self, dtype: Any = np.float64) -> dict[str, Array]:
        losses, end = steps_of(
            self.spec,
            self.forward,
            self.training,
            self.start,
            self.batches,
            dtype,
            self.mistake,
            self.first_slopes,
        )
        state = end.named()
        del state[STEP]  # a framework need not count
        return {LOSS: np.asarray(losses[-1]), **state}

    def stays_in_float32(self) -> bool:
        """Whether the reference does. Otherwise training with these settings diverges, whatever trains."""
        return all(np.isfinite(array).all() for array in self.taken(np.float32).values())


def trained(exercise: Exercise) -> Trained:
    expected = exercise.taken()
    farthest = _farthest(exercise, expected, _NUDGED_RUNS, 1.0)
    # An array that hardly moves, such as a bias whose gradient is a sum of thousands of terms that cancel, is off by
    # more than its own size explains.
    moved = ways(exercise, expected)
    allowed = {name: TIMES_THE_ROUNDING * max(farthest[name], UNIT_ROUNDOFF["fp32"] * moved[name]) for name in expected}
    # One number may be near by chance, and a small one is a difference of large scores.
    allowed[LOSS] = _TIMES_MORE_OF_ONE * max(allowed[LOSS], TIMES_THE_ROUNDING * UNIT_ROUNDOFF["fp32"])
    return Trained(expected, allowed)


def trained_at_kinks(exercise: Exercise, found: Trained) -> Trained:
    """Widen what is allowed by what roundings at kinks may change.

    Roundings that are larger by a factor flip as many times the units, and the changes of so many add up to its root:
    contestants, which round once, stay far inside. Adam makes a whole step of a gradient that is nearly 0, whatever its
    sign, so a few elements may differ by all of their way.
    """
    farthest = _farthest(exercise, found.expected, _NUDGED_RUNS_AT_KINKS, _ROUNDINGS_AT_KINKS)
    moved = ways(exercise, found.expected)
    return Trained(
        found.expected,
        {
            name: max(found.allowed[name], _TIMES_THE_KINKS * distance, _SHARE_OF_THE_WAY * moved[name])
            for name, distance in farthest.items()
        },
    )


def ways(exercise: Exercise, expected: Mapping[str, Array]) -> dict[str, float]:
    """Measure the way of all arrays of a kind together, by the name of each."""
    start = exercise.start.named()
    moved: dict[str, float] = {}
    for name, array in expected.items():
        own = float(np.linalg.norm(array - start.get(name, 0.0)))
        moved[_kind(name)] = float(np.hypot(moved.get(_kind(name), 0.0), own))
    return {name: moved[_kind(name)] for name in expected}


def _kind(name: str) -> str:
    return name.partition("/")[0]


def _farthest(exercise: Exercise, expected: Mapping[str, Array], runs: int, roundings: float) -> dict[str, float]:
    """How far rounding carries each array, in float32 and from weights and inputs that are moved."""
    others = [exercise.taken(np.float32)]
    others += [_nudged(exercise, np.random.default_rng([0, number]), roundings).taken() for number in range(runs)]
    return {
        name: max(float(np.linalg.norm(other[name].astype(np.float64) - array)) for other in others)
        + UNIT_ROUNDOFF["fp32"] * float(np.linalg.norm(array))  # of a result that is kept in float32
        for name, array in expected.items()
    }


def without_loss(found: Trained) -> Trained:
    """For steps whose losses are not read."""
    expected = {name: array for name, array in found.expected.items() if name != LOSS}
    return Trained(expected, {name: found.allowed[name] for name in expected})


ALLOWED = "allowed/"


def written(found: Trained) -> dict[str, Array]:
    """As one mapping, for a file."""
    return {**found.expected, **{ALLOWED + name: np.asarray(value) for name, value in found.allowed.items()}}


def as_trained(arrays: Mapping[str, Array]) -> Trained:
    """Read what ``written`` made."""
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


def moved_array(rng: np.random.Generator, roundings: float, array: Array) -> Array:
    """Move each number by as many of float32's roundings, up or down."""
    if array.dtype.kind != "f":
        return array
    by = roundings * UNIT_ROUNDOFF["fp32"]
    moved: Array = array.astype(np.float64) * (1 + by * rng.choice([-1.0, 1.0], array.shape))
    return moved


def _nudged(exercise: Exercise, rng: np.random.Generator, roundings: float) -> Exercise:
    """Weights and inputs moved by as many of float32's roundings."""
    moved = partial(moved_array, rng, roundings)
    start = State(
        {name: moved(array) for name, array in exercise.start.weights.items()},
        exercise.start.kept,
        exercise.start.step,
    )
    batches = [
        Batch({name: moved(array) for name, array in batch.inputs.items()}, batch.labels) for batch in exercise.batches
    ]
    return replace(exercise, start=start, batches=batches, first_slopes=FirstSlopes())
