"""A point that is ready to be timed: its arguments drawn, and its callables bound to them and found to run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from fairlap import quantity_text, verdict
from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, InvalidRequest, described
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw, copy_of
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.axes.axis import Point, point_text
from fairlap.scenarios.callables.axes.declared_work import DeclaredWork, number_type_of
from fairlap.scenarios.callables.axes.point_inputs import PointInputs, arrays_in
from fairlap.scenarios.callables.device_timing import OnDevice, callables_on_device
from fairlap.scenarios.callables.judging import Judge, outcome, table_of
from fairlap.scenarios.callables.result import CallableRow
from fairlap.scenarios.callables.turns import Arm, Done, Turns

FEWEST_CALLABLES = 2
_WARM_UP_S = 0.02
_SETS_IN_MEMORY = 10  # of arguments, whose answers are known: see answers/check.py
_REPEATING_SHARE = 0.0015  # of the budget, for calls whose answers are checked before any is timed
_LONGEST_REPEATING_S = 0.003

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
    reference: Checked | None
    any_answers: bool
    wrong: Mapping[str, Mapping[str, Notice]]  # on structural inputs, by the type that is applied to them
    seed: int
    budget_s: float  # of a point
    margin: float
    until_steady: bool  # warm up until calls are steady, however long that takes


@dataclass
class ReadyPoint:
    """``failed`` is why it has no further blocks, with its ``code``; those before count."""

    point: Point
    turns: Turns
    answers: Answers
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
            self._fail(str(error), error.code)
        except Exception as error:  # the reference raised it
            self._fail(described(error), PointFailed.code)
        return True

    def _fail(self, why: str, code: str) -> None:
        self.failed, self.code = f"after {quantity_text.count(self.blocks, 'block')}: {why}", code

    def answers_checked(self) -> AnswersChecked:
        """After the last block."""
        self.answers.check_last()
        self.answers.accuse_of_kept_answers()
        self.turns.take_accusations()
        return self.answers.result()

    def is_decided(self, judge: Judge, blocks: int) -> bool:
        judged = [arm for arm in self.turns.arms if not arm.why_excluded]
        return bool(self.failed) or len(judged) < FEWEST_CALLABLES or judge.is_decided(table_of(judged, blocks))

    def meets(self, rule: verdict.StoppingRule, blocks: int) -> bool:
        return bool(self.failed) or verdict.advise(table_of(self.turns.arms, blocks), rule).reason == "target met"

    def rows(self, blocks: int) -> tuple[CallableRow, ...]:
        notices = self.answers.notices
        return tuple(
            CallableRow.of(arm.name, arm.medians_ns[:blocks], (*arm.warnings, *notices[arm.name]))
            for arm in (self.turns.arms if blocks else ())
        )

    def not_ranked(self) -> dict[str, str]:
        """Why callables that answer wrong, or work on after their calls, are in no comparison."""
        return {arm.name: arm.why_excluded for arm in self.turns.arms if arm.why_excluded}

    def comparisons(self, judge: Judge, blocks: int) -> tuple[tuple[verdict.Comparison, ...], str]:
        """Compare all that may be judged, or say why there is nothing."""
        comparisons, _, (why_none, _) = outcome(judge, self.turns.arms, blocks)
        return comparisons, why_none


def ready_point(setting: PointSetting, point: Point, work: DeclaredWork, most_bytes: float) -> ReadyPoint:
    """Draw inputs, of ``most_bytes`` at most, call each callable once, check some answers, and get ready to time."""
    draw = Draw.of(lambda rng: setting.inputs.at(point, rng), setting.seed)
    arguments = draw.arguments(0)
    drawn = (arguments.args, arguments.kwargs)
    size = _SETS_IN_MEMORY * sum(array.nbytes for array in arrays_in(drawn))
    if size > most_bytes:
        left = quantity_text.size(max(most_bytes, 0))
        raise PointFailed(
            f"the inputs at {point_text(point)} take {quantity_text.size(size)}, and {left} is left for all points; "
            "give fewer or smaller ones"
        )
    ready, excluded = _callables_that_run(setting, arguments)
    if len(ready) < FEWEST_CALLABLES:
        raise PointFailed(f"fewer than two callables run at {point_text(point)}: {'; '.join(excluded.values())}")
    options, done = setting.options, setting.done
    if setting.on_device is not None:
        bound = {name: partial(call, *arguments.args, **arguments.kwargs) for name, call in ready.items()}
        timed = callables_on_device(bound, setting.on_device)
        options, done = {**options, **timed.options}, {**timed.done, **done}
    arms = [Arm(name, call, done.get(name)) for name, call in ready.items()]
    answers = _answers(setting, point, arms, draw)
    warm_up_s = math.inf if setting.until_steady else _WARM_UP_S
    turns = Turns(
        arms,
        options,
        setting.turn_s,
        fixed=setting.until_steady,
        warm_up_s=warm_up_s,
        answers=answers,
        margin=setting.margin,
    )
    turns.take_accusations()
    declared = DeclaredWork(work.bytes_per_call, work.flops_per_call, number_type_of(point, drawn))
    return ReadyPoint(point, turns, answers, declared, size, excluded)


def _answers(setting: PointSetting, point: Point, arms: Sequence[Arm], draw: Draw) -> Answers:
    """Those of the callables at this point, of which some calls have been checked."""
    found = Answers(
        [Checked(arm.name, arm.fn, arm.done) for arm in arms],
        draw,
        setting.reference,
        wanted=not setting.any_answers,
        repeating_s=min(_REPEATING_SHARE * setting.budget_s, _LONGEST_REPEATING_S),
    )
    wrong = setting.wrong.get(setting.inputs.applied_dtype(point), {})
    found.wrong.update({arm.name: wrong[arm.name] for arm in arms if arm.name in wrong})
    try:
        found.check_first()
    except FairlapError:
        raise
    except Exception as error:
        raise PointFailed(f"the reference raised {described(error)} at {point_text(point)}") from error
    return found


def _callables_that_run(
    setting: PointSetting, arguments: Arguments
) -> tuple[dict[str, Callable[..., object]], dict[str, str]]:
    """Call each once: one that raises at this point would otherwise take the others with it."""
    ready, excluded = {}, {}
    for name, call in setting.callables.items():
        try:
            Checked(name, call, setting.done.get(name))(copy_of(arguments))
        except Exception as error:
            excluded[name] = f"{name} raised {described(error)}"
        else:
            ready[name] = call
    return ready, excluded
