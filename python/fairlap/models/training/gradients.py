"""Compare the gradients of a user's model with those of its float64 reference, array by array.

How far a right contestant may be off is found as for steps of training: the same gradients are taken in float32, and in
float64 from weights and inputs that were moved by what float32 rounds away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from fairlap.models.spec import UNIT_ROUNDOFF
from fairlap.models.training.exercise import TIMES_THE_ROUNDING, Array, Trained, distances, moved_array
from fairlap.models.training.own_mistakes import first_half
from fairlap.models.training.reference import LOSS, Batch, NotComputed, OwnSlopes, Slopes

_ROUNDING = 1e-9  # relative, of two evaluations in float64


def are_same(one: Slopes, other: Slopes) -> bool:
    """Compare the gradients relative to the largest of all, so that a loss far from zero does not hide them."""
    pairs = [(array, other.gradients[name]) for name, array in one.gradients.items()]
    largest = max((float(np.abs(array).max(initial=0.0)) for array, _ in pairs), default=0.0)
    if any(np.abs(a - b).max(initial=0.0) > _ROUNDING * largest for a, b in pairs):
        return False
    return abs(one.loss - other.loss) <= _ROUNDING * max(abs(one.loss), largest)


GRADIENT = "grad/"
_NUDGED_RUNS, _NUDGED_RUNS_AT_KINKS = 2, 6
_ROUNDINGS_AT_KINKS, _TIMES_THE_KINKS, _SHARE_OF_ALL = 16.0, 2.0, 0.02
_TIMES_MORE_OF_ONE = 8.0  # a loss may be near by chance
_AS_NEAR = 0.05  # to a mistake, as a share of what the contestant is off by


@dataclass(frozen=True)
class GradientExercise:
    """A batch whose gradients are taken, of the model as it is in inference."""

    reference: OwnSlopes
    weights: Mapping[str, Array]
    batch: Batch

    def taken(self, dtype: type = np.float64) -> dict[str, Array]:
        return _named(self._slopes(dtype))

    def taken_twice(self) -> dict[str, Array]:
        """Refuse a reference that differs from itself, since what a contestant may be off by would grow with that."""
        slopes = self._slopes(np.float64)
        if not are_same(slopes, self._slopes(np.float64)):
            raise NotComputed(
                "the loss or its gradients are others each time for the same inputs, so nothing can be compared with "
                "them; remove what draws random numbers or keeps a state from the loss",
                code="E_SOURCE_RANDOM",
            )
        return _named(slopes)

    def _slopes(self, dtype: type) -> Slopes:
        weights: dict[str, Array] = {name: array.astype(dtype) for name, array in self.weights.items()}
        inputs = {n: each.astype(dtype) if each.dtype.kind == "f" else each for n, each in self.batch.inputs.items()}
        return self.reference.slopes(weights, Batch(inputs, self.batch.labels), training=False)

    def nudged(self, seed: int, roundings: float) -> GradientExercise:
        """Move weights and inputs by so many of float32's roundings."""
        moved = partial(moved_array, np.random.default_rng([0, seed]), roundings)
        batch = Batch({name: moved(array) for name, array in self.batch.inputs.items()}, self.batch.labels)
        return replace(self, weights={name: moved(array) for name, array in self.weights.items()}, batch=batch)


def _named(slopes: Slopes) -> dict[str, Array]:
    return {LOSS: np.asarray(slopes.loss), **{GRADIENT + name: array for name, array in slopes.gradients.items()}}


def gradients_expected(exercise: GradientExercise) -> Trained:
    expected = exercise.taken_twice()
    others = [exercise.taken(np.float32), *(exercise.nudged(seed, 1.0).taken() for seed in range(_NUDGED_RUNS))]
    farthest, whole = _farthest(expected, others), _whole(expected)
    unit = UNIT_ROUNDOFF["fp32"]
    allowed = {name: TIMES_THE_ROUNDING * max(farthest[name], unit * whole) for name in expected}
    scale = max(abs(float(expected[LOSS])), 1.0)
    allowed[LOSS] = _TIMES_MORE_OF_ONE * TIMES_THE_ROUNDING * max(farthest[LOSS], unit * scale)
    return Trained(expected, allowed)


def _farthest(expected: Mapping[str, Array], others: list[dict[str, Array]]) -> dict[str, float]:
    return {
        name: max(float(np.linalg.norm(other[name].astype(np.float64) - array)) for other in others)
        for name, array in expected.items()
    }


def _whole(expected: Mapping[str, Array]) -> float:
    """Measure all gradients together: one that is a sum of terms that cancel is off by more than its size explains."""
    return float(np.sqrt(sum(np.sum(np.square(array)) for name, array in expected.items() if name != LOSS)))


class GradientCheck:
    """Most of it is computed for the first contestant that needs it."""

    def __init__(self, exercise: GradientExercise, found: Trained) -> None:
        self._exercise, self._found = exercise, found

    @property
    def found(self) -> Trained:
        return self._found

    @np.errstate(over="ignore", invalid="ignore")
    def judged(self, got: Mapping[str, Array]) -> tuple[dict[str, float], str]:
        """Compute the distance of each array in multiples of what is allowed, and what was done instead, if known."""
        apart = distances(self._found, got)
        if max(apart.values()) <= 1:
            return apart, ""
        if why := self._what_it_did(got):
            return apart, why
        return distances(self._widened, got), ""

    def _what_it_did(self, got: Mapping[str, Array]) -> str:
        expected = self._found.expected
        usable = {
            name: array for name, array in got.items() if name in expected and array.shape == expected[name].shape
        }
        if still := [name for name, array in usable.items() if not array.any() and self._matters(name)]:
            return f"its gradient of {still[0].removeprefix(GRADIENT)} is 0, as of a weight that is cut off"
        away = self._apart(usable, expected)
        near = ((self._apart(usable, taken), what) for what, taken in self._mistakes.items())
        distance, what = min(near, default=(np.inf, ""))
        return what if distance < _AS_NEAR * away else ""

    def _matters(self, name: str) -> bool:
        return float(np.linalg.norm(self._found.expected[name])) > self._found.allowed[name]

    def _apart(self, got: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
        return float(
            np.sqrt(
                sum(
                    np.sum(np.square(got[name].astype(np.float64) - expected[name])) / self._found.allowed[name] ** 2
                    for name in got
                    if name != LOSS and self._found.allowed[name]
                )
            )
        )

    @cached_property
    def _mistakes(self) -> dict[str, dict[str, Array]]:
        return dict(_mistakes(self._exercise, self._found.expected))

    @cached_property
    def _widened(self) -> Trained:
        """By what roundings at kinks may change, as of steps of training."""
        runs = range(_NUDGED_RUNS_AT_KINKS)
        others = [self._exercise.nudged(seed, _ROUNDINGS_AT_KINKS).taken() for seed in runs]
        expected, allowed = self._found.expected, self._found.allowed
        farthest, share = _farthest(expected, others), _SHARE_OF_ALL * _whole(expected)
        wider = {name: max(allowed[name], _TIMES_THE_KINKS * farthest[name], share) for name in expected}
        return Trained(expected, {**wider, LOSS: max(allowed[LOSS], _TIMES_THE_KINKS * farthest[LOSS])})


def _mistakes(exercise: GradientExercise, expected: Mapping[str, Array]) -> Iterator[tuple[str, dict[str, Array]]]:
    labels = exercise.batch.labels
    times = {"it adds up its gradients twice": 2.0}
    if labels is not None:
        times["it adds up the loss of its items instead of averaging it"] = float(labels.size)
    for what, factor in times.items():
        yield what, {name: factor * array for name, array in expected.items()}
    if labels is not None:
        shifted = Batch(exercise.batch.inputs, np.roll(labels, 1))
        yield "its labels are shifted by one", replace(exercise, batch=shifted).taken()
    half = first_half(exercise.batch)
    if half is not None:
        try:
            yield "it takes the first half of the batch", replace(exercise, batch=half).taken()
        except NotComputed:  # of a model that is bound to its batch
            return
