"""When a race may end before its last block: when all is decided, when the intervals are narrow, or by the clock.

None of these may raise the rate of false differences: when to look at the verdict is decided from times that are sorted
within each block, and looking spends the level; see docs/explanation/verdict.md.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from fairlap import quantity_text, verdict
from fairlap.race.counted_blocks import WorkBlocks, design_of, work_blocks
from fairlap.race.planning.plan import Block, Plan
from fairlap.scenarios.process_result import ProcessResult

MINIMUM_BLOCKS = 12
_FEWEST_COMPARED = 2
_NEVER = ("not_installed", "unsupported")  # however often it is tried
_NO_ANSWER = "E_SERVER"  # a server that is not there, or is none, is so in the next block too
_CHANCES = 2  # blocks in which it may turn out that there is something to compare
LEAST_OF_A_REQUEST_S = 20.0
DECIDED = "every comparison is decided"
_NARROW = "every interval is about as narrow as asked"
_OUT_OF_TIME = ("it took ", "another block would not have fitted")


class Ending:
    """Asked after each block. A race ends only between rounds, so that every work has had as many blocks.

    ``target`` is the half-width wanted of every interval, as a share; the rule sees each block's figures sorted.
    Where neither it nor a budget is given, they are those of the plan. ``past_decision``: a decided race gets more
    blocks, so that only its budget or its last block ends it. ``also_decided``: what else a decided race waits for.
    A race until decided that was given no budget has the default one, or longer while it has too few blocks to claim
    anything: a large model compiles for most of a minute, and no verdict is of no use.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        target: float | None = None,
        budget_s: float | None = None,
        past_decision: bool = False,
        also_decided: Callable[[Sequence[ProcessResult]], bool] = lambda _: True,
    ) -> None:
        rounds = _rounds(plan, plan.blocks)
        target = plan.target if target is None else target
        budget_s = plan.budget_s if budget_s is None else budget_s
        self._plan = plan
        self._rule: verdict.StoppingRule | None = None
        self._past_decision, self._also_decided = past_decision, also_decided
        if target is not None and not past_decision:
            self._rule = verdict.StoppingRule(target, minimum=MINIMUM_BLOCKS, cap=max(MINIMUM_BLOCKS, rounds))
        self._patient = plan.until_decided and budget_s is None
        usual_s, self._longest_s = plan.budgets_s
        self._budget_s = usual_s if self._patient else budget_s
        self._began_s = time.monotonic()
        self._last_round_ended_s = 0.0
        self._rounds_ended = 0

    @property
    def longest_s(self) -> float | None:
        """How long the race may take in all, where that is known."""
        return self._longest_s if self._patient else self._budget_s

    def budget_left_s(self) -> float | None:
        return None if self._budget_s is None else self._budget_s - self._elapsed_s()

    @property
    def longest_request_s(self) -> float:
        """The longest time that a contestant may take to answer, before it is lost, where a budget was given.

        It is no less than what importing a framework and a first call take on a busy machine.
        """
        given_s = None if self._patient else self._budget_s
        return math.inf if given_s is None else max(given_s, LEAST_OF_A_REQUEST_S)

    def leave_out(self, seconds: float) -> None:
        """Do not count what happens once on a machine, such as installing a release."""
        self._began_s += seconds

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def ends_first_block(self) -> bool:
        """Check that no further turn, epoch or trial is begun: the budget is spent in the first round.

        Later rounds are begun only where they fit into it.
        """
        given_s = None if self._patient else self._budget_s
        return given_s is not None and not self._rounds_ended and self._elapsed_s() > given_s

    def reason(self, ran: Sequence[Block], processes: Sequence[ProcessResult], kept: int = 0) -> str:
        """Why to end here; empty to go on. Blocks that were kept from an earlier run have taken none of this time."""
        rounds = _rounds(self._plan, ran)
        if rounds == 0:
            return ""
        if processes and (why_none := _why_none_runs(processes)):
            return why_none
        if self._plan.until_decided and not self._past_decision:
            kinds = {block.conditions for block in self._plan.blocks}
            bases = {conditions: work_blocks(self._plan, processes, conditions) for conditions in kinds}
            if self._decided(bases.values()) and self._also_decided(processes):
                return DECIDED
            if rounds >= _CHANCES and not any(map(_has_a_pair, bases[self._plan.headline])):
                return "fewer than two contestants can be ranked"
        elapsed_s = self._elapsed_s()
        next_round_s = self._next_round_s(elapsed_s, rounds, len(ran), kept)
        budget_s = self.longest_s if rounds < self._fewest_blocks else self._budget_s
        if budget_s is not None and elapsed_s > budget_s:
            return self._spent(elapsed_s)
        if budget_s is not None and elapsed_s + next_round_s > budget_s:
            return f"{_OUT_OF_TIME[1]} into {budget_s:g} s"
        if self._rule is None or rounds < MINIMUM_BLOCKS:
            return ""
        tables = [each.table for each in work_blocks(self._plan, processes, self._plan.headline)]
        advice = [verdict.advise(table, self._rule) for table in tables if table is not None]
        if len(advice) < len(tables) or not all(each.stop for each in advice):
            return ""
        widest = max(each.half_width for each in advice)
        return f"{_NARROW} (± {quantity_text.share(widest)})"

    def _spent(self, elapsed_s: float) -> str:
        spent = f"{_OUT_OF_TIME[0]}{elapsed_s:,.0f} s, and its budget was {self._budget_s:g} s"
        if not self._patient:
            return spent
        return f"{spent}, which may grow to {self._longest_s:g} s for the first {self._fewest_blocks} blocks"

    def _next_round_s(self, elapsed_s: float, rounds: int, blocks: int, kept: int) -> float:
        """Estimate that the next round takes as long as the last one.

        The first round of a race until decided starts alone and reads frameworks from the disk, so the second one is
        expected to take half as long.
        """
        last_s = elapsed_s - self._last_round_ended_s
        self._last_round_ended_s = elapsed_s
        ended = rounds - self._rounds_ended
        self._rounds_ended = rounds
        if rounds == 1 and kept == 0 and self._plan.until_decided:
            return last_s / 2
        return last_s if ended == 1 and kept == 0 else elapsed_s / (blocks - kept) * blocks / rounds

    @property
    def _fewest_blocks(self) -> int:
        """Count the blocks with which anything can be claimed."""
        return verdict.blocks_to_claim(
            len(self._plan.works), alpha=self._plan.alpha, contestants=len(self._plan.contestants)
        )

    def _decided(self, bases: Iterable[Sequence[WorkBlocks]]) -> bool:
        """On every work, under every kind of conditions."""
        tables = [[basis.table for basis in kind if basis.table is not None] for kind in bases]
        if any(len(kind) < len(self._plan.works) for kind in tables):
            return False
        return not any(design_of(self._plan, kind).ended_blind for kind in tables)


def _why_none_runs(processes: Sequence[ProcessResult]) -> str:
    if all(each.outcome in _NEVER for each in processes):
        return "no contestant can run here"
    return "no server answers" if all(each.code == _NO_ANSWER for each in processes) else ""


def ended_by_rule(reason: str) -> str:
    """Why a race ended, as it was recorded, where it had enough or no time left; empty where data or a disk failed."""
    first = reason.partition(";")[0]
    return first if first == DECIDED or first.startswith((_NARROW, *_OUT_OF_TIME)) else ""


def is_out_of_time(reason: str) -> bool:
    """Whether the budget ended the race, blind to its figures."""
    return reason.startswith(_OUT_OF_TIME)


def _has_a_pair(basis: WorkBlocks) -> bool:
    return len(basis.ranked) >= 2


def blinded_half_width(plan: Plan, processes: Sequence[ProcessResult]) -> float:
    """Of the widest interval so far, as a share, found without looking at who has which figure; else infinite."""
    tables = [each.table for each in work_blocks(plan, processes, plan.headline)]
    if any(table is None for table in tables) or not tables:
        return math.inf
    rule = verdict.StoppingRule(minimum=2)
    return max(math.expm1(verdict.advise(table, rule).half_width) for table in tables if table is not None)


def too_few_blocks(plan: Plan) -> verdict.StatisticalWarning | None:
    """Known before the race: no difference can be claimed, however clear it turns out to be."""
    if len(plan.contestants) < _FEWEST_COMPARED:
        return None
    return verdict.too_few_blocks(_rounds(plan, plan.blocks), len(plan.contestants), len(plan.works), plan.alpha)


def _rounds(plan: Plan, blocks: Sequence[Block]) -> int:
    """How many whole rounds of all works have run under the plan's headline conditions; 0 within a round."""
    ran = Counter((block.work, block.conditions) for block in blocks)
    headline = {ran[work, plan.headline] for work in range(len(plan.works))}
    others = {count for (_, conditions), count in ran.items() if conditions != plan.headline}
    if len(headline) > 1 or len(others) > 1:
        return 0
    return headline.pop()
