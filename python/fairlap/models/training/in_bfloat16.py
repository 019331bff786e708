"""Steps of training with bfloat16: where they end, and how far from there a right contestant may end.

``autocast`` keeps weights and what the optimizer keeps in float32, so its steps are compared with float64. In ``bf16``
both are rounded after every step, and a weight that should move by less than half a rounding stays as it is; so these
steps are computed in float64, and what is kept between them is rounded. How far the rounding of all other operations
may carry a contestant is found by steps that round each of them, and add up in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairlap.models.checks.differentiation import Traced
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.spec import UNIT_ROUNDOFF
from fairlap.models.training.exercise import Array, Exercise, Forward, Trained, trained, ways
from fairlap.models.training.reference import (
    BUFFER,
    LOSS,
    MEAN,
    SQUARE,
    STEP,
    Batch,
    FirstSlopes,
    State,
    steps_of,
)
from fairlap.models.training.rounded_arrays import Rounded, WithRoundedProducts, bare
from fairlap.request.work import Precision

TRAINED_IN: tuple[Precision, ...] = ("fp32", "bf16", "autocast")

_TIMES_THE_ROUNDING = 4.0
_NUDGED_RUNS = 3
_TIMES_MORE_OF_ONE = 4.0
_SHARE_OF_THE_WAY = 0.15


def in_precision(exercise: Exercise, precision: Precision) -> Exercise:
    """Begun with what a contestant holds in this precision."""
    if precision != "bf16":
        return replace(exercise, precision=precision)
    batches = [Batch(_all_rounded(batch.inputs), batch.labels) for batch in exercise.batches]
    return replace(exercise, precision=precision, start=kept_in_bfloat16(exercise.start), batches=batches)


def end_of(exercise: Exercise) -> dict[str, Array]:
    """Of steps that round nothing but what they keep."""
    if exercise.precision != "bf16":
        return exercise.taken()
    spec, forward, training, mistake = exercise.spec, exercise.forward, exercise.training, exercise.mistake
    state, losses = exercise.start, [0.0]
    for batch in exercise.batches:
        first = exercise.first_slopes if state is exercise.start else None
        losses, after = steps_of(spec, forward, training, state, [batch], mistake=mistake, first_slopes=first)
        state = kept_in_bfloat16(after)
    named = state.named()
    del named[STEP]
    return {LOSS: np.asarray(losses[-1]), **named}


@np.errstate(over="ignore", invalid="ignore")  # training may diverge
def trained_in_precision(exercise: Exercise) -> Trained:
    """As ``trained``, in the precision of the exercise."""
    if exercise.precision == "fp32":
        return trained(exercise)
    expected, unit = end_of(exercise), UNIT_ROUNDOFF[exercise.precision]
    rounded = [end_with_rounding(exercise, seed) for seed in (None, *range(_NUDGED_RUNS))]
    way = ways(exercise, expected)
    allowed = {
        name: _TIMES_THE_ROUNDING
        * max(unit * way[name], *(float(np.linalg.norm(other[name] - array)) for other in rounded))
        for name, array in expected.items()
    }
    for name, array in expected.items():
        # Most of what was kept stays in the next step. The factors of averages are rounded, too, and TensorFlow's
        # mixed precision rewrites the arithmetic of the optimizer with the rest of the graph.
        if name.startswith((BUFFER, MEAN, SQUARE)):
            allowed[name] += unit * float(np.linalg.norm(array))
    allowed[LOSS] = _TIMES_MORE_OF_ONE * max(allowed[LOSS], _TIMES_THE_ROUNDING * unit)
    return Trained(expected, allowed)


def trained_with_lost_sums(exercise: Exercise, found: Trained) -> Trained:
    """Widen what is allowed by the terms that sums in bfloat16 lose.

    A library that adds up in bfloat16 loses terms of a long sum: once it is 256 times as large as a term, it no longer
    changes. That may be most of a bias' gradient, and a part of a kernel's.
    """
    way = ways(exercise, found.expected)
    lost = {name: _SHARE_OF_THE_WAY * way[name] for name in found.expected if name != LOSS}
    return Trained(found.expected, {name: max(each, lost.get(name, 0.0)) for name, each in found.allowed.items()})


def end_with_rounding(exercise: Exercise, seed: int | None = None) -> dict[str, Array]:
    """Of steps that round every operation; with a seed, of inputs that were moved."""
    return _as_plain(_with_rounding(exercise, seed).taken(np.float32))


def _with_rounding(exercise: Exercise, seed: int | None) -> Exercise:
    """Round the results of every operation, or in ``autocast`` of products.

    The loss is computed in float32. With a seed, inputs are moved by what bfloat16 rounds away, so that other numbers
    are rounded up.
    """
    kind = Rounded if exercise.precision == "bf16" else WithRoundedProducts
    rng = None if seed is None else np.random.default_rng([0, seed])

    def held(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: kind.of(array) if array.dtype.kind == "f" else array for name, array in arrays.items()}

    def nudged(arrays: Mapping[str, Array]) -> dict[str, Array]:
        if rng is None:
            return dict(arrays)
        by = UNIT_ROUNDOFF[exercise.precision]
        return {
            name: array * (1 + by * rng.choice([-1.0, 1.0], array.shape)) if array.dtype.kind == "f" else array
            for name, array in arrays.items()
        }

    start = exercise.start
    return replace(
        exercise,
        forward=_with_loss_in_float32(exercise, kind),
        start=State(held(start.weights), {name: held(arrays) for name, arrays in start.kept.items()}, start.step),
        batches=[Batch(held(nudged(batch.inputs)), batch.labels) for batch in exercise.batches],
        first_slopes=FirstSlopes(),
    )


def _with_loss_in_float32(exercise: Exercise, kind: type[Rounded]) -> Forward:
    first = exercise.spec.outputs[0].name

    def forward(*given: Any) -> Mapping[str, Any]:
        outputs = exercise.forward(*given)
        output = outputs[first]
        return {**outputs, first: Traced(bare(output.value), [(output, kind.of)])}

    return forward


def _as_plain(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: bare(array) for name, array in arrays.items()}


def kept_in_bfloat16(state: State) -> State:
    return State(
        _all_rounded(state.weights), {kind: _all_rounded(arrays) for kind, arrays in state.kept.items()}, state.step
    )


def _all_rounded(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name: rounded_to_bfloat16(array).reshape(array.shape) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }
