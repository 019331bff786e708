"""One race of two points by the rules of ``fairlap judge``: what each block shows, or why nothing is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairlap.bisection.bisect_request import BisectRequest, race_between
from fairlap.bisection.bisection import Ratio
from fairlap.bisection.contestants import Side, fields_between
from fairlap.judgement.judge_request import least_gain_of
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.race_of_sides import Question, plan_between, raced
from fairlap.machine.race_lock.lock import one_race
from fairlap.pull_request.sides import BASE, CHANGE
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Progress
from fairlap.verdict import ONE_SIDE, decision_after, fewest_blocks

ProgressFor = Callable[[Plan, float | None], Progress]


@dataclass(frozen=True)
class Raced:
    """How much more the later one took in each block, as logarithms; empty where nothing was compared."""

    log_ratios: tuple[float, ...]
    found: Judgement
    least_step: float = 0.0  # as a share; a smaller difference is none

    @property
    def failed(self) -> bool:
        """The later one failed, or answered otherwise than the earlier one."""
        return self.found.reason in ("wrong_answers", "change_failed")

    @property
    def is_worse(self) -> bool:
        return self._is_shown(-1.0)

    @property
    def is_better(self) -> bool:
        return self._is_shown(1.0)

    @property
    def ratio(self) -> Ratio | None:
        found = self.found
        if found.speedup is None or found.interval is None:
            return None
        low, high = found.interval.low, found.interval.high
        return Ratio(
            1 / found.speedup,
            None if high is None else 1 / high,
            None if low is None else 1 / low,
            found.interval.level,
            found.blocks,
        )

    def _is_shown(self, sign: float) -> bool:
        """Show it by as few blocks as any claim takes, else it is undecided."""
        if len(self.log_ratios) < fewest_blocks(ONE_SIDE, ended=True):
            return False
        speedups = -np.array(self.log_ratios)
        return decision_after(sign * speedups, self.least_step, ONE_SIDE, ended=self.found.ended_undecided) == "keep"


def race(
    request: BisectRequest,
    earlier: Side,
    later: Side,
    blocks: int | None,
    budget_s: float | None,
    progress_for: ProgressFor,
    notify: Callable[[str], None],
) -> Raced:
    """Race for so many blocks, or without a number until it is decided which is better."""
    fields = fields_between(request, {BASE: earlier, CHANGE: later})
    plan = plan_between(fields, race_between(request, blocks), notify)
    with one_race(wait=request.wait, notify=notify):
        found = raced(plan, Question(0.0, ONE_SIDE, request.quantity), budget_s, progress_for)
    log_ratios = tuple((-np.log(found.speedups)).tolist()) if found.speedups else ()
    return Raced(log_ratios, found, least_gain_of(request.quantity))
