"""A point that is ready to be timed: its arguments drawn, and its callables bound to them and found to run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.errors import FairlapError, InvalidRequest, described
from fairlap.scenarios.callables.axes.axis import Point, point_text
from fairlap.scenarios.callables.axes.declared_work import DeclaredWork, number_type_of
from fairlap.scenarios.callables.axes.point_inputs import PointInputs, arrays_in, bound
from fairlap.scenarios.callables.device_timing import OnDevice, callables_on_device
from fairlap.scenarios.callables.judging import Judge, outcome, table_of
from fairlap.scenarios.callables.result import CallableRow
from fairlap.scenarios.callables.turns import Arm, Done, Turns

FEWEST_CALLABLES = 2
_WARM_UP_S = 0.02

Callables: TypeAlias = Mapping[str, Callable[..., object]]


class PointFailed(InvalidRequest):
    """A point cannot be timed: too few callables run there, or its inputs do not fit into memory."""

    code = "E_POINT"


@dataclass(frozen=True)
class PointSetting:
    """What all points share. ``turn_s`` is the time of a callable in a block."""

    callables: Callables
    inputs: PointInputs
    done: Mapping[str, Done]
    options: Mapping[str, Any]  # of fairlap.measure
    turn_s: float
    on_device: OnDevice | None  # None for the CPU
    until_steady: bool  # warm up until calls are steady, however long that takes


@dataclass
class ReadyPoint:
    """``failed`` is why it has no further blocks, with its ``code``; those before count."""

    point: Point
    turns: Turns
    work: DeclaredWork
    bytes_of_inputs: int
    excluded: dict[str, str] = field(default_factory=dict)  # callables that raise here
    failed: str = ""
    code: str = ""

    @property
    def blocks(self) -> int:
        return min(len(arm.medians_ns) for arm in self.turns.arms)

    @property
    def quantity(self) -> str:
        """That of every callable; figures of different ones are refused."""
        return self.turns.arms[0].quantity

    def block(self, rng: random.Random) -> bool:
        """Return False when interrupted."""
        try:
            return self.turns.block(rng)
        except FairlapError as error:
            self.failed, self.code = f"after {quantity_text.count(self.blocks, 'block')}: {error}", error.code
            return True

    def is_decided(self, judge: Judge, blocks: int) -> bool:
        judged = [arm for arm in self.turns.arms if not arm.why_excluded]
        return bool(self.failed) or len(judged) < FEWEST_CALLABLES or judge.is_decided(table_of(judged, blocks))

    def meets(self, rule: verdict.StoppingRule, blocks: int) -> bool:
        return bool(self.failed) or verdict.advise(table_of(self.turns.arms, blocks), rule).reason == "target met"

    def rows(self, blocks: int) -> tuple[CallableRow, ...]:
        return tuple(_row(arm, blocks) for arm in self.turns.arms) if blocks else ()

    def late(self) -> dict[str, str]:
        """Why callables whose work goes on after their calls are in no comparison."""
        return {arm.name: arm.why_excluded for arm in self.turns.arms if arm.why_excluded}

    def comparisons(self, judge: Judge, blocks: int) -> tuple[tuple[verdict.Comparison, ...], str]:
        """Compare all that may be judged, or say why there is nothing."""
        comparisons, _, why_none = outcome(judge, self.turns.arms, blocks)
        return comparisons, why_none


def ready_point(setting: PointSetting, point: Point, work: DeclaredWork, most_bytes: float) -> ReadyPoint:
    """Draw the inputs, of ``most_bytes`` at most, call each callable once, and warm up."""
    arguments = setting.inputs.at(point)
    size = sum(array.nbytes for array in arrays_in(arguments))
    if size > most_bytes:
        left = quantity_text.size(max(most_bytes, 0))
        raise PointFailed(
            f"the inputs at {point_text(point)} take {quantity_text.size(size)}, and {left} is left for all points; "
            "give fewer or smaller ones"
        )
    ready, excluded = _callables_that_run(bound(setting.callables, arguments))
    if len(ready) < FEWEST_CALLABLES:
        raise PointFailed(f"fewer than two callables run at {point_text(point)}: {'; '.join(excluded.values())}")
    options, done = setting.options, setting.done
    if setting.on_device is not None:
        timed = callables_on_device(ready, setting.on_device)
        options, done = {**options, **timed.options}, {**timed.done, **done}
    arms = [Arm(name, call, done.get(name)) for name, call in ready.items()]
    warm_up_s = math.inf if setting.until_steady else _WARM_UP_S
    turns = Turns(arms, options, setting.turn_s, fixed=setting.until_steady, warm_up_s=warm_up_s)
    declared = DeclaredWork(work.bytes_per_call, work.flops_per_call, number_type_of(point, arguments))
    return ReadyPoint(point, turns, declared, size, excluded)


def _callables_that_run(
    callables: Mapping[str, Callable[[], object]],
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """Call each once: one that raises at this point would otherwise take the others with it."""
    ready, excluded = {}, {}
    for name, call in callables.items():
        try:
            call()
        except Exception as error:
            excluded[name] = f"{name} raised {described(error)}"
        else:
            ready[name] = call
    return ready, excluded


def _row(arm: Arm, blocks: int) -> CallableRow:
    medians = tuple(arm.medians_ns[:blocks])
    return CallableRow(arm.name, medians, verdict.contestant_figure(np.log(medians)), arm.warnings)
