"""From laps to what they show: a row for every contestant under every condition, and the verdict between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median_low

import numpy as np

from fairlap import verdict
from fairlap.engine import digits
from fairlap.race.gating import Gated, busy_with_others, gated
from fairlap.race.laps import Lap, Outcome, SmallestMemory
from fairlap.race.plan import Conditions, Plan, Work

FAULTS = "page_faults"


@dataclass(frozen=True)
class Contender:
    """One contestant on one work under one kind of conditions."""

    contestant: str
    conditions: Conditions
    laps: tuple[Lap, ...]
    figure: verdict.ContestantFigure | None  # None when no process finished
    causes: tuple[verdict.ModeCause, ...]

    @property
    def finished(self) -> tuple[Lap, ...]:
        return tuple(lap for lap in self.laps if lap.finished)

    @property
    def trouble(self) -> str:
        """Why it is not ranked, or what went wrong in some of its processes; empty when nothing did."""
        bad = [lap for lap in self.laps if not lap.finished]
        if not bad:
            return ""
        outcome = self.worst_outcome
        count = sum(lap.outcome == outcome for lap in bad)
        message = next(lap.message for lap in bad if lap.outcome == outcome)
        often = "" if count == len(self.laps) else f" in {count} of {len(self.laps)} processes"
        return f"{outcome.replace('_', ' ')}{often}: {message}"

    @property
    def worst_outcome(self) -> Outcome:
        """Other work once weighs most; else what happened most often to those that did not finish."""
        bad = Counter(lap.outcome for lap in self.laps if not lap.finished)
        if "disqualified" in bad:
            return "disqualified"
        return bad.most_common(1)[0][0] if bad else "finished"

    @property
    def ranked(self) -> bool:
        """Doing other work once is enough not to be ranked; a crash is not a wrong answer."""
        return bool(self.finished) and all(lap.outcome != "disqualified" for lap in self.laps)

    @property
    def median_ns(self) -> float:
        """The figure; where several modes leave none, the time of a process in the middle, no average between modes."""
        if self.figure is not None and self.figure.value is not None:
            return self.figure.value
        return median_low(lap.headline_ns for lap in self.finished)

    @property
    def range_ns(self) -> tuple[float, float]:
        values = [lap.headline_ns for lap in self.finished]
        return min(values), max(values)

    @property
    def smallest_memory(self) -> SmallestMemory | None:
        """One search for a contestant on a work, under the conditions of the verdict."""
        return next((lap.smallest_memory for lap in self.laps if lap.smallest_memory), None)

    def median_of(self, counter: str) -> float | None:
        values = [lap.per_call[counter] for lap in self.finished if counter in lap.per_call]
        return float(np.median(values)) if values else None

    @property
    def worst_relative_error(self) -> float | None:
        errors = [error.relative for lap in self.laps for error in lap.errors]
        return max(errors) if errors else None


@dataclass(frozen=True)
class Heat:
    """All that one work showed under one kind of conditions."""

    work: str
    conditions: Conditions
    rows: tuple[Contender, ...]  # the fastest first, then those that are not ranked
    blocks: Gated
    table: verdict.BlockTable | None = None  # None when fewer than two could be compared in two blocks
    compared: Mapping[str, Sequence[Lap]] = field(default_factory=dict)  # the laps in the table
    comparisons: tuple[verdict.Comparison, ...] = ()
    standing: verdict.Standing | None = None
    why_no_verdict: str = ""

    @cached_property
    def busy(self) -> str:
        """That the machine was busy with other work all the time; empty when it was not."""
        return busy_with_others([lap for row in self.rows for lap in row.laps])


@dataclass(frozen=True)
class Results:
    heats: tuple[Heat, ...]

    def heat(self, work: str, conditions: Conditions) -> Heat | None:
        return next((heat for heat in self.heats if (heat.work, heat.conditions) == (work, conditions)), None)

    def order_differs(self, work: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The ranked contestants in both orders, when controlling the conditions makes two of them swap places.

        A swap counts when no process of the one overlaps with any of the other, under both conditions.
        """
        found, controlled = self.heat(work, "as-found"), self.heat(work, "controlled")
        if found is None or controlled is None:
            return None
        ranges = [{row.contestant: row.range_ns for row in heat.rows if row.ranked} for heat in (found, controlled)]
        both = [name for name in ranges[0] if name in ranges[1]]
        if not any(
            _below(ranges[0][a], ranges[0][b]) and _below(ranges[1][b], ranges[1][a]) for a in both for b in both
        ):
            return None
        return tuple(both), tuple(name for name in ranges[1] if name in both)


def _below(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] < other[0]


def results_of(plan: Plan, laps: Sequence[Lap], *, margin: float = 0.02) -> Results:
    """One family of comparisons for all works under the plan's first conditions; the others are shown beside."""
    heats: list[Heat] = []
    for conditions in ("controlled", "as-found"):
        drafts = drafts_of(plan, laps, conditions)
        tables = [draft.table for draft in drafts if draft.table is not None]
        comparisons = verdict.judge(tables, margin=margin) if tables else ()
        heats += [_judged(draft, comparisons) for draft in drafts]
    return Results(tuple(heats))


def drafts_of(plan: Plan, laps: Sequence[Lap], conditions: Conditions) -> list[Heat]:
    """Every work's heat before its comparisons, which need the tables of all works."""
    drafts = (_draft(plan, work, laps, conditions) for work in plan.works)
    return [draft for draft in drafts if draft is not None]


def _draft(plan: Plan, work: Work, laps: Sequence[Lap], conditions: Conditions) -> Heat | None:
    label = work.label  # made anew each time it is asked for
    here = [lap for lap in laps if lap.work == label and lap.conditions == conditions]
    if not here:
        return None
    rows = _rows(plan, here, conditions)
    blocks, why = _blocks_that_count(rows, here, len(plan.works))
    if why:
        return Heat(work.label, conditions, rows, blocks, why_no_verdict=why)
    inside = _in_blocks(rows, blocks.kept)
    table = verdict.block_table(
        {name: [lap.headline_ns for lap in own] for name, own in inside.items()}, workload=work.label
    )
    return Heat(work.label, conditions, rows, blocks, table, inside)


def _judged(heat: Heat, comparisons: Sequence[verdict.Comparison]) -> Heat:
    if heat.table is None:
        return heat
    own = tuple(each for each in comparisons if each.workload == heat.work)
    return replace(heat, comparisons=own, standing=verdict.standing(heat.table, own))


def _rows(plan: Plan, laps: Sequence[Lap], conditions: Conditions) -> tuple[Contender, ...]:
    rows = []
    for name in plan.contestants:
        own = tuple(lap for lap in laps if lap.contestant == name.text)
        if own:
            rows.append(_row(name.text, conditions, own))
    return tuple(sorted(rows, key=lambda row: (not row.ranked, row.median_ns if row.finished else float("inf"))))


def _row(contestant: str, conditions: Conditions, laps: tuple[Lap, ...]) -> Contender:
    finished = [lap for lap in laps if lap.finished]
    if not finished:
        return Contender(contestant, conditions, laps, None, ())
    figure = verdict.contestant_figure(np.log([lap.headline_ns for lap in finished]))
    return Contender(contestant, conditions, laps, figure, verdict.mode_causes(figure.modes, _covariates(finished)))


def _covariates(laps: Sequence[Lap]) -> dict[str, Sequence[float] | Sequence[str]]:
    """What may separate the modes. A count that some process lacks is left out."""
    named = {"page faults per call": FAULTS, "migrations": "migrations"}
    covariates: dict[str, Sequence[float] | Sequence[str]] = {
        shown: [lap.per_call[key] for lap in laps]
        for shown, key in named.items()
        if all(key in lap.per_call for lap in laps)
    }
    covariates["core"] = [",".join(map(str, lap.cores)) for lap in laps]
    covariates["position in block"] = [float(lap.position) for lap in laps]
    return covariates


def _blocks_that_count(rows: Sequence[Contender], laps: Sequence[Lap], works: int) -> tuple[Gated, str]:
    """Only blocks in which every ranked contestant finished, since a block with a hole would compare unequal noise;
    and of those only what the noise gate leaves. Also why they carry no verdict, if they do not."""
    ranked = [row for row in rows if row.ranked]
    complete = sorted(set.intersection(*({lap.block for lap in row.finished} for row in ranked))) if ranked else []
    if len(ranked) < 2:
        told = f"{digits.counted(len(ranked), 'contestant')} can be ranked; a comparison needs two"
        return Gated(tuple(complete), (), ""), told
    blocks = gated(complete, laps, works * math.comb(len(ranked), 2))
    if len(blocks.kept) < 2:
        return blocks, f"{digits.counted(len(blocks.kept), 'complete block')}; a verdict needs two, and six to claim"
    return blocks, ""


def _in_blocks(rows: Sequence[Contender], blocks: Sequence[int]) -> dict[str, Sequence[Lap]]:
    """For every ranked contestant its laps in these blocks, in their order."""
    by_block = {row.contestant: {lap.block: lap for lap in row.finished} for row in rows if row.ranked}
    return {name: [laps[block] for block in blocks] for name, laps in by_block.items()}
