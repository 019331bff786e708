"""Find out what a contestant did instead of the steps of training that it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from fairlap.models.rank_parts import part_of, parts_of
from fairlap.models.training.exercise import Array, Exercise, Trained
from fairlap.models.training.own_mistakes import mistakes_of_own_code
from fairlap.models.training.reference import LOSS, WEIGHT, Batch, FirstSlopes, Mistake, OwnSlopes
from fairlap.request.fields.training import AdamW, Schedule, Training

_ALONG = 0.9  # the cosine of the angle between what a contestant is off by and the way
_LONGER = 1e-4  # in float32, 1 - 0.999 ** 1 of Adam is off by 1e-5 of it
_AS_NEAR = 0.05  # to a mistake, as a share of the way to it from the steps that were asked for
_NEARER = 0.3  # to the nearest mistake, of what is wrong in any case
_LONGER_WHEN_ROUNDED, _AS_NEAR_WHEN_ROUNDED = 0.15, 0.3  # to bfloat16


def what_it_did(
    found: Trained, exercise: Exercise, got: Mapping[str, Array], mistakes: Mapping[str, Mapping[str, Array]]
) -> str:
    """Which of the ``mistakes`` ends where this contestant did; empty if none does."""
    expected = found.expected
    got = {name: array for name, array in got.items() if name in expected and array.shape == expected[name].shape}
    if not all(np.isfinite(array).all() for array in got.values()):
        return "its loss or its weights are not finite"
    began, away = exercise.start.named(), _apart(found, expected, got)
    if all(np.array_equal(got.get(name, array), array) for name, array in began.items()) and away:
        return "it does not train at all"
    rounds = exercise.precision != "fp32"  # then a weight may stay where a sum is lost
    if not rounds and (frozen := _frozen(exercise, found, began, got)):
        return f"it does not train {frozen}"
    near = _AS_NEAR if exercise.precision == "fp32" else _AS_NEAR_WHEN_ROUNDED
    for distance, what in sorted((_apart(found, taken, got), what) for what, taken in mistakes.items()):
        if distance < near * min(away, _apart(found, mistakes[what], expected)):
            return what
    return _longer_steps(exercise, expected, got)


def _frozen(exercise: Exercise, found: Trained, began: Mapping[str, Array], got: Mapping[str, Array]) -> str:
    """Name weights that stayed exactly as they were, where they should have moved by more than rounding explains."""
    trained = [WEIGHT + weight.name for weight in exercise.spec.weights if weight.trained]
    names = [
        name.removeprefix(WEIGHT)
        for name in trained
        if name in got
        and np.array_equal(got[name], began[name])
        and np.linalg.norm(found.expected[name] - began[name]) > found.allowed[name]
    ]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def nearest_mistake(found: Trained, got: Mapping[str, Array], mistakes: Mapping[str, Mapping[str, Array]]) -> str:
    """Name the mistake nearest to steps that are wrong in any case.

    Empty if they are not clearly nearer to a mistake than to what was asked for. Where a mistake makes training
    chaotic, rounding carries it farther than right steps.
    """
    distance, what = min((_apart(found, taken, got), what) for what, taken in mistakes.items())
    return what if distance < _NEARER * _apart(found, found.expected, got) else ""


def _apart(found: Trained, one: Mapping[str, Array], other: Mapping[str, Array]) -> float:
    """Measure the distance in multiples of what is allowed.

    So an array of which rounding alone decides, such as the bias of an attention's keys, counts for nothing. The loss
    is left out: an update that comes too late leaves it right.
    """
    squares = (
        np.sum(np.square(one[name] - other[name].astype(np.float64))) / allowed**2
        for name, allowed in found.allowed.items()
        if name != LOSS and allowed and name in one and name in other and one[name].shape == other[name].shape
    )
    return float(np.sqrt(sum(squares)))


def _longer_steps(exercise: Exercise, expected: Mapping[str, Array], got: Mapping[str, Array]) -> str:
    """Recognize another learning rate, which leads along the way, while rounding leads anywhere."""
    began = exercise.start.named()
    names = [WEIGHT + each.name for each in exercise.spec.weights if each.trained and WEIGHT + each.name in got]
    way = np.concatenate([(expected[name] - began[name]).ravel() for name in names] or [np.zeros(0)])
    off = np.concatenate([(got[name].astype(np.float64) - expected[name]).ravel() for name in names] or [np.zeros(0)])
    sizes = float(np.linalg.norm(way)), float(np.linalg.norm(off))
    longer = _LONGER if exercise.precision == "fp32" else _LONGER_WHEN_ROUNDED
    if not sizes[0] or abs(float(way @ off)) < max(_ALONG * sizes[0] * sizes[1], longer * sizes[0] ** 2):
        return ""
    return f"its steps are {1 + float(way @ off) / sizes[0] ** 2:.4g} times as long as those asked for"


def mistakes(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    """Each with the steps that it makes."""
    yield from _of_the_optimizer(exercise)
    yield from _of_the_batches(exercise)
    yield from _of_the_ranks(exercise)
    if exercise.spec.has_statistics():
        forward = _as_in_inference(exercise.forward)
        yield "it normalises by the running averages, as in inference", replace(exercise, forward=forward)
    if isinstance(exercise.forward, OwnSlopes):
        yield from mistakes_of_own_code(exercise)


def _as_in_inference(forward: Any) -> Any:
    if isinstance(forward, OwnSlopes):
        return forward.in_inference()
    return lambda weights, inputs, _statistics: forward(weights, inputs)


def _of_the_optimizer(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    optimizer, schedule = exercise.training.optimizer, exercise.training.schedule

    def by(**changes: Any) -> Exercise:
        return replace(exercise, training=Training(msgspec.structs.replace(optimizer, **changes), schedule))

    for times in (2.0, 0.5, 10.0, 0.1):
        yield f"its learning rate is {times:g} times the one asked for", by(lr=times * optimizer.lr)
    if exercise.ranks == 1:
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
    if first.labels is not None:
        late = [Batch(now.inputs, before.labels) for before, now in pairwise(exercise.batches)]
        yield "it takes the labels of the batch before", replace(exercise, batches=[first, *late])


_ON_PART_OF = "it trains on the part of the batch of rank {} alone"


def _of_the_ranks(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    if exercise.ranks == 1:
        return
    times = float(exercise.ranks)
    what = "its ranks add up their gradients instead of averaging them"
    yield what, replace(exercise, mistake=Mistake(gradient_times=times))
    yield "its ranks divide their gradients twice by their number", replace(exercise, mistake=Mistake(1 / times))
    for number in range(exercise.ranks):
        parts = [_part(batch, number, exercise.ranks) for batch in exercise.batches]
        yield _ON_PART_OF.format(number), replace(exercise, batches=parts, first_slopes=FirstSlopes())


def _part(batch: Batch, number: int, count: int) -> Batch:
    labels = None if batch.labels is None else part_of(batch.labels, number, count)
    return Batch(parts_of(batch.inputs, number, count), labels)


def mistake_of_ranks(whys: Sequence[str]) -> str:
    """Find what all ranks together did, by what was found of the state of each; empty where that says no more."""
    if len(whys) > 1 and list(whys) == [_ON_PART_OF.format(number) for number in range(len(whys))]:
        return "its ranks do not exchange their gradients: each trains on its own part of the batch"
    if len(whys) > 1 and len(set(whys)) == 1 and whys[0] in [_ON_PART_OF.format(each) for each in range(len(whys))]:
        return f"all of its ranks read the same part of the batch: {whys[0].removeprefix('it trains on ')}"
    return ""
