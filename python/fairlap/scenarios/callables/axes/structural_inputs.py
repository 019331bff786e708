"""Which callables answer wrong on inputs that are those of no point: odd sizes, layouts and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fairlap.engine.measurement import Notice
from fairlap.engine.timed_calls import name_of
from fairlap.models.sources.callables.functions import sizes_of
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.structural import check_structural
from fairlap.scenarios.callables.axes.axis import Point
from fairlap.scenarios.callables.axes.point_inputs import PointInputs, with_dtype
from fairlap.scenarios.callables.axes.ready_point import Callables
from fairlap.scenarios.callables.turns import Done


def wrong_on_structural(
    callables: Callables,
    done: Mapping[str, Done],
    reference: Checked | None,
    inputs: PointInputs,
    points: Sequence[Point],
    seed: int,
) -> dict[str, dict[str, Notice]]:
    """Find them by the type that is applied; what sizes do not vary is that of the first point with this type."""
    wrong: dict[str, dict[str, Notice]] = {}
    for point in points:
        if (dtype := inputs.applied_dtype(point)) in wrong:
            continue
        drawn = partial(inputs.draw, **{name: value for name, value in point.items() if name not in inputs.applied})

        def converted(rng: Any, _drawn: Callable[..., object] = drawn, _dtype: str = dtype, **sizes: int) -> object:
            arguments = _drawn(rng, **sizes)
            return with_dtype(arguments, _dtype) if _dtype else arguments

        draw = Draw(converted, name_of(inputs.draw), seed, sizes_of(drawn))
        found = Answers([Checked(name, call, done.get(name)) for name, call in callables.items()], draw, reference)
        found.check_first()
        if found.are_compared:
            check_structural(found, draw)
        wrong[dtype] = found.wrong
    return wrong
