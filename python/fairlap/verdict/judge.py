"""From tables of blocks to verdicts.

The verdict is read off the interval, so the two cannot disagree: a difference is shown where the interval
excludes 1, equivalence where the equivalence interval is inside the margin. A difference that is
shown takes precedence over equivalence; `within_margin` then marks it as small.

Each table has an equal part of alpha. Within a table all pairs are one family (see multiplicity.py), tested at every
look of the run (see looks.py). What is guaranteed: of all differences claimed, the chance that any is false is at most
alpha, whatever the dependence between them. Each interval taken alone covers at least as often as 1 - alpha; all
together cover less often, since closed testing draws the interval of each pair at the level at which the pair
alone was tested. docs/explanation/verdict.md has the measured figure.

What was decided at a look stays decided. It is shown with the figures of all blocks where those agree at the level
of the last look, and otherwise with the figures of the look that decided it.

With a gate, what is decided is whether the interval of each contestant against the baseline excludes the bound. Table
and gate have one interval from one set of blocks, and the verdict is read off it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from fairlap.verdict.blocks import BadInput, BlockTable, Floats, require_between
from fairlap.verdict.comparison import Comparison, Interval, Verdict
from fairlap.verdict.detectable_effects import blocks_to_claim, detectable_log_effect
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.multiplicity import Corrected, correct_differences, holm, levels_that_agree
from fairlap.verdict.exact_tests.signed_rank import equivalence_interval, log_margin, p_equivalent, sign_interval
from fairlap.verdict.figures.modes import find_modes
from fairlap.verdict.gates.slowdown import Gate
from fairlap.verdict.warnings import (
    ModesUnderneath,
    NoSpread,
    ScatteredBlocks,
    SkewedDifferences,
    StatisticalWarning,
    TooFewBlocks,
)
from fairlap.verdict.when_to_stop.looks import Design, level_of_an_extra_look, looks

ERROR_RATE = 0.05
"""Of any false claim in all tables together."""
FIXED = Design()
_MOST_SCATTER = 2.0  # the largest ratio of a block over the smallest


def judge(
    tables: Sequence[BlockTable], *, alpha: float = ERROR_RATE, margin: float = 0.02, design: Design = FIXED
) -> tuple[Comparison, ...]:
    """Compare all pairs of each table, or the fastest with each other contestant.

    Of all differences claimed in all tables, the chance that any is false is at most alpha; of all equivalences
    claimed, likewise. ``design`` says how the run was to end.
    """
    require_between("alpha", alpha, 0.0, 1.0)
    log_margin(margin)
    if not tables:
        raise BadInput("no table was given; at least one is needed")
    found: list[Comparison] = []
    for table in tables:
        course = _Course(table, alpha / len(tables), margin, design)
        few = too_few_blocks(
            table.blocks, len(table.contestants), len(tables), alpha, interchangeable=table.interchangeable
        )
        too_few = () if few is None else (few,)
        found += [course.comparison(pair, too_few) for pair in course.asked]
    return tuple(found)


def levels_at_end(
    tables: Sequence[BlockTable], *, alpha: float = ERROR_RATE, margin: float = 0.02, design: Design = FIXED
) -> tuple[float, ...]:
    """Find at which level the look after all blocks of each table was, or that of the next one would have been.

    At this level the run may be judged by another quantity too. Its verdict then rests on one look, whose number the
    run chose by its times, and the levels of all looks that it could have been add up to no more than alpha.
    """
    return tuple(_Course(table, alpha / len(tables), margin, design).level_at_end for table in tables)


def decided(tables: Sequence[BlockTable], *, alpha: float = ERROR_RATE, margin: float = 0.02, design: Design) -> bool:
    """Whether a run until decided may end after these blocks because every comparison asked for is decided.

    A run that ends for this reason has not ended blindly. What a look once decided stays decided, so the tables of
    several works may be decided after different numbers of blocks.
    """
    if not tables:
        raise BadInput("no table was given; at least one is needed")
    running = replace(design, until_decided=True, ended_blind=False)
    courses = (_Course(table, alpha / len(tables), margin, running) for table in tables)
    return all(course.is_decided for course in courses)


def design_so_far(
    tables: Sequence[BlockTable],
    *,
    alpha: float = ERROR_RATE,
    margin: float = 0.02,
    until_decided: bool,
    only_winner: bool = False,
    gate: Gate | None = None,
) -> Design:
    """Of a run that ends, or goes on, after these blocks: one until decided that is not has not seen its signs."""
    running = Design(until_decided, only_winner, ended_blind=False, gate=gate)
    is_over = until_decided and decided(tables, alpha=alpha, margin=margin, design=running)
    return replace(running, ended_blind=not is_over)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """All pairs of one table after some of its blocks, tested at one level; each array has one item per pair."""

    table: BlockTable
    level: float
    margin: float
    differences: Floats  # log ratios shaped (pairs, blocks)
    walsh: Floats
    p: Floats
    p_same: Floats
    different: Corrected
    same: Corrected

    @cached_property
    def signs(self) -> Floats:
        """1 where the first of the pair is shown above the second, -1 where below, else 0."""
        signs: Floats = np.where(self.different.shown, np.sign(self.centres), 0.0)
        return signs

    @cached_property
    def centres(self) -> Floats:
        return signed_rank.centre(self.walsh)

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        return signed_rank.interval(self.walsh, self.different.levels)

    @cached_property
    def equivalence_interval(self) -> tuple[Floats, Floats]:
        return equivalence_interval(self.walsh, self.same.levels)

    @cached_property
    def detectable_effects(self) -> Floats:
        return detectable_log_effect(self.differences, self.centres, self.different.levels)

    @cached_property
    def modes(self) -> dict[str, int]:
        table = self.table
        if table.evidence == "within one process":
            return dict.fromkeys(table.contestants, 1)
        return {
            name: len(find_modes(table.log_figures_of(name), table.halves.get(name)).modes)
            for name in table.contestants
        }

    def withheld(self) -> _Evidence:
        """Withhold claims: return the same figures with intervals that claim nothing."""
        return replace(self, different=_withheld(self.different, self.p), same=_withheld(self.same, self.p_same))


def _withheld(corrected: Corrected, p: Floats) -> Corrected:
    shown = np.zeros_like(corrected.shown)
    return Corrected(shown, levels_that_agree(p, shown, corrected.levels), corrected.adjusted)


def _evidence(table: BlockTable, level: float, margin: float) -> _Evidence:
    first, second = np.triu_indices(len(table.contestants), k=1)
    differences = (table.log_figures[:, first] - table.log_figures[:, second]).T
    walsh = signed_rank.walsh_averages(differences)
    p, p_same = signed_rank.p_two_sided(walsh), p_equivalent(walsh, margin)
    # Relabelling tests hypotheses about more than two contestants, whose labels it exchanges within a block.
    different = correct_differences(table.log_figures, p, level) if table.interchangeable else holm(p, level)
    same = holm(p_same, level)
    found = _Evidence(table, level, margin, differences, walsh, p, p_same, different, same)
    return found if table.blocks >= signed_rank.blocks_to_reach(level) else found.withheld()


class _Course:
    """One table at all its looks."""

    def __init__(self, table: BlockTable, alpha: float, margin: float, design: Design) -> None:
        self._table = table
        self._margin = margin
        log_times = table.log_figures if table.metric.better == "lower" else -table.log_figures
        self._edges: dict[int, float] = {}  # the bound of the gate as a log ratio, by pair
        self._pairs = list(combinations(range(len(table.contestants)), 2))
        looked_at = log_times
        if design.gate is not None and design.gate.baseline in table.contestants:
            looked_at = log_times + self._put_edges(design.gate)
        else:  # without its baseline there is nothing to ask
            design = replace(design, gate=None)
        self._looks = looks(looked_at, alpha=alpha, margin=margin, design=design)
        self._ends_with_a_look = bool(self._looks) and self._looks[-1].blocks == table.blocks
        self._next_level = level_of_an_extra_look(self._looks, alpha)
        fastest = int(np.median(log_times, axis=0).argmin())
        self.asked = [i for i, pair in enumerate(self._pairs) if not design.only_winner or fastest in pair]

    @cached_property
    def _seen(self) -> list[_Evidence]:
        return [_evidence(self._table.first(look.blocks), look.level, self._margin) for look in self._looks]

    @property
    def level_at_end(self) -> float:
        return self._looks[-1].level if self._ends_with_a_look else self._next_level

    def _put_edges(self, gate: Gate) -> Floats:
        """Compute what to add to the log times, so that a contestant at the bound is equal to the baseline."""
        place, bound = self._table.contestants.index(gate.baseline), float(np.log1p(gate.max_slowdown))
        sign = 1.0 if self._table.metric.better == "lower" else -1.0
        for i, (a, b) in enumerate(self._pairs):
            if place in (a, b):
                self._edges[i] = sign * (bound if b == place else -bound)
        added = np.zeros(len(self._table.contestants))
        added[place] = bound
        return added

    @property
    def is_decided(self) -> bool:
        if self._edges:
            return all(any(self._side_of_edge(seen, i) for seen in self._seen) for i in self._edges)
        return all(any(seen.signs[i] or seen.same.shown[i] for seen in self._seen) for i in self.asked)

    @cached_property
    def _last(self) -> _Evidence:
        """All blocks, at the level of the look after them, or of the look that would have been the next."""
        return self._seen[-1] if self._ends_with_a_look else _evidence(self._table, self._next_level, self._margin)

    def _side_of_edge(self, seen: _Evidence, pair: int) -> int:
        """1 where the interval is above the bound, -1 where below, 0 where the bound is inside."""
        edge, (low, high) = self._edges[pair], seen.interval
        return int(low[pair] > edge + signed_rank.ROUNDING) - int(high[pair] < edge - signed_rank.ROUNDING)

    def _outcome_of_gate(self, pair: int) -> tuple[_Evidence, Verdict, int | None]:
        last = self._last if self._ends_with_a_look else self._last.withheld()
        side, shown = next(((side, seen) for seen in self._seen if (side := self._side_of_edge(seen, pair))), (0, last))
        if side and self._ends_with_a_look and self._side_of_edge(last, pair) == side:
            shown = last
        verdict = Verdict.EQUIVALENT if shown.same.shown[pair] else Verdict.INCONCLUSIVE
        if sign := shown.signs[pair]:
            verdict = self._verdict_of(sign)
        return shown, verdict, None if verdict is Verdict.INCONCLUSIVE else shown.table.blocks

    def _verdict_of(self, sign: float) -> Verdict:
        return Verdict.SLOWER if (sign > 0) == (self._table.metric.better == "lower") else Verdict.FASTER

    def outcome(self, pair: int) -> tuple[_Evidence, Verdict, int | None]:
        """Choose the figures to show, the verdict, and the number of blocks after which it was decided."""
        if pair in self._edges:
            return self._outcome_of_gate(pair)
        last = self._last
        for seen in self._seen:
            if sign := seen.signs[pair]:
                return (last if last.signs[pair] == sign else seen), self._verdict_of(sign), seen.table.blocks
        for seen in self._seen:
            if seen.same.shown[pair]:
                agrees = last.same.shown[pair] and not last.signs[pair]
                return (last if agrees else seen), Verdict.EQUIVALENT, seen.table.blocks
        return (last if self._ends_with_a_look else last.withheld()), Verdict.INCONCLUSIVE, None

    def comparison(self, pair: int, too_few: tuple[StatisticalWarning, ...]) -> Comparison:
        shown, verdict, decided_after = self.outcome(pair)
        table = shown.table
        a, b = (table.contestants[each] for each in self._pairs[pair])
        low, high = (float(end[pair]) for end in shown.interval)
        same_low, same_high = (float(end[pair]) for end in shown.equivalence_interval)
        level, same_level = float(shown.different.levels[pair]), float(shown.same.levels[pair])
        sign_low, sign_high = sign_interval(shown.differences[pair], level)
        warnings: list[StatisticalWarning] = [*too_few]
        spread = float(np.ptp(shown.differences[pair]))
        if spread < signed_rank.ROUNDING:
            warnings.append(NoSpread())
        if spread > np.log(_MOST_SCATTER):
            warnings.append(ScatteredBlocks(float(np.exp(spread))))
        if not sign_low <= shown.centres[pair] <= sign_high:
            warnings.append(SkewedDifferences(float(np.exp(sign_low)), float(np.exp(sign_high))))
        warnings += [ModesUnderneath(name, shown.modes[name]) for name in (a, b) if shown.modes[name] > 1]
        return Comparison(
            workload=table.workload,
            metric=table.metric,
            a=a,
            b=b,
            blocks=table.blocks,
            ratio=float(np.exp(shown.centres[pair])),
            interval=_ratios(low, high, level),
            p=float(shown.p[pair]),
            p_adjusted=float(shown.different.adjusted[pair]),
            margin=shown.margin,
            equivalence_interval=_ratios(same_low, same_high, 2 * same_level),
            p_equivalent=float(shown.p_same[pair]),
            p_equivalent_adjusted=float(shown.same.adjusted[pair]),
            sign_interval=_ratios(sign_low, sign_high, level),
            detectable_effect=float(np.expm1(shown.detectable_effects[pair])),
            verdict=verdict,
            within_margin=bool(shown.same.shown[pair]) and verdict is not Verdict.INCONCLUSIVE,
            level=shown.level,
            decided_after_blocks=decided_after,
            evidence=table.evidence,
            warnings=tuple(warnings),
        )


def too_few_blocks(
    blocks: int, contestants: int, tables: int = 1, alpha: float = ERROR_RATE, *, interchangeable: bool = True
) -> TooFewBlocks | None:
    """Why no verdict about so many works can come of so many blocks; known before they have run."""
    alone = blocks_to_claim(alpha=alpha)
    needed = blocks_to_claim(tables, alpha=alpha, contestants=contestants, interchangeable=interchangeable)
    if blocks < alone:
        return TooFewBlocks(blocks, alone, alpha)
    comparisons = tables * (contestants * (contestants - 1) // 2)
    return TooFewBlocks(blocks, needed, alpha, comparisons) if blocks < needed else None


def _ratios(low: float, high: float, level: float) -> Interval:
    return Interval(float(np.exp(low)), float(np.exp(high)), level)
