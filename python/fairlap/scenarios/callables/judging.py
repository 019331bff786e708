"""When a comparison of callables ends, and how its blocks are judged.

It never ends by which callable leads, but where the looks at that are counted (fairlap/verdict/when_to_stop/looks.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.scenarios.callables.turns import Arm
from fairlap.verdict.blocks import BlockTable, require_between
from fairlap.verdict.exact_tests.signed_rank import log_margin

_FEWEST_BLOCKS_TO_TARGET = 12


@dataclass(frozen=True)
class Judge:
    alpha: float
    margin: float
    until_decided: bool
    only_winner: bool

    def __post_init__(self) -> None:
        require_between("alpha", self.alpha, 0.0, 1.0)
        log_margin(self.margin)

    def is_decided(self, table: BlockTable) -> bool:
        return not self._design(table).ended_blind

    def comparisons(self, table: BlockTable) -> tuple[verdict.Comparison, ...]:
        return verdict.judge([table], alpha=self.alpha, margin=self.margin, design=self._design(table))

    def _design(self, table: BlockTable) -> verdict.Design:
        return verdict.design_so_far(
            [table],
            alpha=self.alpha,
            margin=self.margin,
            until_decided=self.until_decided,
            only_winner=self.only_winner,
        )


class Ending:
    """Asked before each block."""

    def __init__(self, judge: Judge, target: float | None, budget_s: float, blocks: int, began_s: float) -> None:
        fewest = min(_FEWEST_BLOCKS_TO_TARGET, max(blocks, 2))
        self._rule = None if target is None else verdict.StoppingRule(target, minimum=fewest, cap=max(blocks, fewest))
        self._judge = judge
        self._looks = frozenset(verdict.possible_looks(blocks)) if judge.until_decided else frozenset()
        self._budget_s = budget_s
        self._began_s = began_s
        self._blocks_began_s = 0.0

    def why(self, arms: Sequence[Arm]) -> str:
        """Empty to continue."""
        done = len(arms[0].medians_ns)
        now_s = time.perf_counter()
        if not done:
            self._blocks_began_s = now_s
            return ""
        after = f"stopped after {quantity_text.count(done, 'block')}: "
        if done in self._looks:
            judged = [arm for arm in arms if not arm.why_excluded]
            if len(judged) < 2:
                return f"{after}fewer than two callables can be judged"
            if self._judge.is_decided(table_of(judged, done)):
                return f"{after}every comparison is decided"
        block_s = (now_s - self._blocks_began_s) / done
        if now_s - self._began_s + block_s > self._budget_s:
            return f"{after}the budget allows no further block"
        if self._rule is None or done < 2:
            return ""
        return f"{after}target met" if verdict.advise(table_of(arms, done), self._rule).reason == "target met" else ""


def table_of(arms: Sequence[Arm], blocks: int) -> BlockTable:
    """Of the first so many blocks."""
    figures = {arm.name: verdict.Figures(arm.quantity, arm.medians_ns[:blocks]) for arm in arms}
    return verdict.block_table(figures, evidence="within one process")


def outcome(
    judge: Judge, arms: Sequence[Arm], blocks: int, shown_ns: Mapping[str, float] | None = None
) -> tuple[tuple[verdict.Comparison, ...], verdict.Standing | None, tuple[str, str]]:
    """Comparisons of all that may be judged, or why there are none, with the code."""
    judged = [arm for arm in arms if not arm.why_excluded]
    why_none = why_not_compared(len(judged), blocks)
    if why_none[0]:
        return (), None, why_none
    table = table_of(judged, blocks)
    comparisons = judge.comparisons(table)
    if all(len(arm.cycles) == len(arm.medians_ns) for arm in judged):
        comparisons = _checked_by_cycles(judge, judged, blocks, comparisons)
    return comparisons, verdict.standing(table, comparisons, shown_ns), why_none


def _checked_by_cycles(
    judge: Judge, arms: Sequence[Arm], blocks: int, by_time: tuple[verdict.Comparison, ...]
) -> tuple[verdict.Comparison, ...]:
    """On a GPU whose clock was read at each sample."""
    figures = {arm.name: verdict.Figures(arm.quantity, arm.cycles[:blocks]) for arm in arms}
    by_cycles = judge.comparisons(verdict.block_table(figures, evidence="within one process"))
    mhz = {arm.name: float(np.median(1e3 * np.divide(arm.cycles[:blocks], arm.medians_ns[:blocks]))) for arm in arms}
    return verdict.unless_cycles_disagree(by_time, by_cycles, mhz)


def why_not_compared(judged: int, blocks: int) -> tuple[str, str]:
    """Explain with a code why so many that can be judged are not compared; empty where they are."""
    if judged < 2:
        code = verdict.ONE_RANKED
        return f"{quantity_text.count(judged, 'callable')} can be judged; a comparison needs two [{code}]", code
    if blocks < 2:
        code = verdict.TooFewBlocks.code
        return f"{quantity_text.count(blocks, 'complete block')}; a comparison needs two [{code}]", code
    return "", ""
