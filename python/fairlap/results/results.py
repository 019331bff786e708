"""From processes to what they show: a row for every contestant under every condition, and the verdict between them."""

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
from fairlap.race.noisy_blocks import Gated, busy_with_others, gated
from fairlap.race.plan import Plan
from fairlap.race.process_result import Outcome, ProcessResult, SmallestMemory
from fairlap.request.work import Conditions, Work

FAULTS = "page_faults"


@dataclass(frozen=True)
class ContestantResult:
    """One contestant on one work under one kind of conditions."""

    contestant: str
    conditions: Conditions
    processes: tuple[ProcessResult, ...]
    figure: verdict.ContestantFigure | None  # None when no process finished
    causes: tuple[verdict.ModeCause, ...]

    @property
    def finished(self) -> tuple[ProcessResult, ...]:
        return tuple(process for process in self.processes if process.finished)

    @property
    def trouble(self) -> str:
        """Why it is not ranked, or what went wrong in some of its processes; empty when nothing did."""
        bad = [process for process in self.processes if not process.finished]
        if not bad:
            return ""
        outcome = self.worst_outcome
        count = sum(process.outcome == outcome for process in bad)
        message = next(process.message for process in bad if process.outcome == outcome)
        often = "" if count == len(self.processes) else f" in {count} of {len(self.processes)} processes"
        return f"{outcome.replace('_', ' ')}{often}: {message}"

    @property
    def worst_outcome(self) -> Outcome:
        """Other work once weighs most; else what happened most often to those that did not finish."""
        bad = Counter(process.outcome for process in self.processes if not process.finished)
        if "disqualified" in bad:
            return "disqualified"
        return bad.most_common(1)[0][0] if bad else "finished"

    @property
    def ranked(self) -> bool:
        """Doing other work once is enough not to be ranked; a crash is not a wrong answer."""
        return bool(self.finished) and all(process.outcome != "disqualified" for process in self.processes)

    @property
    def median_ns(self) -> float:
        """The figure; where several modes leave none, the time of a process in the middle, no average between modes."""
        if self.figure is not None and self.figure.value is not None:
            return self.figure.value
        return median_low(process.headline_ns for process in self.finished)

    @property
    def range_ns(self) -> tuple[float, float]:
        values = [process.headline_ns for process in self.finished]
        return min(values), max(values)

    @property
    def smallest_memory(self) -> SmallestMemory | None:
        """One search for a contestant on a work, under the conditions of the verdict."""
        return next((process.smallest_memory for process in self.processes if process.smallest_memory), None)

    def median_of(self, counter: str) -> float | None:
        values = [process.per_call[counter] for process in self.finished if counter in process.per_call]
        return float(np.median(values)) if values else None

    @property
    def worst_relative_error(self) -> float | None:
        errors = [error.relative for process in self.processes for error in process.errors]
        return max(errors) if errors else None


@dataclass(frozen=True)
class WorkResult:
    """All that one work showed under one kind of conditions."""

    work: str
    conditions: Conditions
    rows: tuple[ContestantResult, ...]  # the fastest first, then those that are not ranked
    blocks: Gated
    table: verdict.BlockTable | None = None  # None when fewer than two could be compared in two blocks
    compared: Mapping[str, Sequence[ProcessResult]] = field(default_factory=dict)  # the processes in the table
    comparisons: tuple[verdict.Comparison, ...] = ()
    standing: verdict.Standing | None = None
    why_no_verdict: str = ""

    @cached_property
    def busy(self) -> str:
        """That the machine was busy with other work all the time; empty when it was not."""
        return busy_with_others([process for row in self.rows for process in row.processes])


@dataclass(frozen=True)
class Results:
    work_results: tuple[WorkResult, ...]

    def work_result(self, work: str, conditions: Conditions) -> WorkResult | None:
        return next(
            (
                work_result
                for work_result in self.work_results
                if (work_result.work, work_result.conditions) == (work, conditions)
            ),
            None,
        )

    def order_differs(self, work: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The ranked contestants in both orders, when controlling the conditions makes two of them swap places.

        A swap counts when no process of the one overlaps with any of the other, under both conditions.
        """
        found, controlled = self.work_result(work, "as-found"), self.work_result(work, "controlled")
        if found is None or controlled is None:
            return None
        ranges = [
            {row.contestant: row.range_ns for row in work_result.rows if row.ranked}
            for work_result in (found, controlled)
        ]
        both = [name for name in ranges[0] if name in ranges[1]]
        if not any(
            _below(ranges[0][a], ranges[0][b]) and _below(ranges[1][b], ranges[1][a]) for a in both for b in both
        ):
            return None
        return tuple(both), tuple(name for name in ranges[1] if name in both)


def _below(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] < other[0]


def results_of(plan: Plan, processes: Sequence[ProcessResult], *, margin: float = 0.02) -> Results:
    """One family of comparisons for all works under the plan's first conditions; the others are shown beside."""
    work_results: list[WorkResult] = []
    for conditions in ("controlled", "as-found"):
        drafts = drafts_of(plan, processes, conditions)
        tables = [draft.table for draft in drafts if draft.table is not None]
        comparisons = verdict.judge(tables, margin=margin) if tables else ()
        work_results += [_judged(draft, comparisons) for draft in drafts]
    return Results(tuple(work_results))


def drafts_of(plan: Plan, processes: Sequence[ProcessResult], conditions: Conditions) -> list[WorkResult]:
    """Every work's work_result before its comparisons, which need the tables of all works."""
    drafts = (_draft(plan, work, processes, conditions) for work in plan.works)
    return [draft for draft in drafts if draft is not None]


def _draft(plan: Plan, work: Work, processes: Sequence[ProcessResult], conditions: Conditions) -> WorkResult | None:
    label = work.label  # made anew each time it is asked for
    here = [process for process in processes if process.work == label and process.conditions == conditions]
    if not here:
        return None
    rows = _rows(plan, here, conditions)
    blocks, why = _blocks_that_count(rows, here, len(plan.works))
    if why:
        return WorkResult(work.label, conditions, rows, blocks, why_no_verdict=why)
    inside = _in_blocks(rows, blocks.kept)
    table = verdict.block_table(
        {name: [process.headline_ns for process in own] for name, own in inside.items()}, workload=work.label
    )
    return WorkResult(work.label, conditions, rows, blocks, table, inside)


def _judged(work_result: WorkResult, comparisons: Sequence[verdict.Comparison]) -> WorkResult:
    if work_result.table is None:
        return work_result
    own = tuple(each for each in comparisons if each.workload == work_result.work)
    return replace(work_result, comparisons=own, standing=verdict.standing(work_result.table, own))


def _rows(plan: Plan, processes: Sequence[ProcessResult], conditions: Conditions) -> tuple[ContestantResult, ...]:
    rows = []
    for name in plan.contestants:
        own = tuple(process for process in processes if process.contestant == name.text)
        if own:
            rows.append(_row(name.text, conditions, own))
    return tuple(sorted(rows, key=lambda row: (not row.ranked, row.median_ns if row.finished else float("inf"))))


def _row(contestant: str, conditions: Conditions, processes: tuple[ProcessResult, ...]) -> ContestantResult:
    finished = [process for process in processes if process.finished]
    if not finished:
        return ContestantResult(contestant, conditions, processes, None, ())
    figure = verdict.contestant_figure(np.log([process.headline_ns for process in finished]))
    return ContestantResult(
        contestant, conditions, processes, figure, verdict.mode_causes(figure.modes, _covariates(finished))
    )


def _covariates(processes: Sequence[ProcessResult]) -> dict[str, Sequence[float] | Sequence[str]]:
    """What may separate the modes. A count that some process lacks is left out."""
    named = {"page faults per call": FAULTS, "migrations": "migrations"}
    covariates: dict[str, Sequence[float] | Sequence[str]] = {
        shown: [process.per_call[key] for process in processes]
        for shown, key in named.items()
        if all(key in process.per_call for process in processes)
    }
    covariates["core"] = [",".join(map(str, process.cores)) for process in processes]
    covariates["position in block"] = [float(process.position) for process in processes]
    return covariates


def _blocks_that_count(
    rows: Sequence[ContestantResult], processes: Sequence[ProcessResult], works: int
) -> tuple[Gated, str]:
    """Only blocks in which every ranked contestant finished, since a block with a hole would compare unequal noise;
    and of those only what the noise gate leaves. Also why they carry no verdict, if they do not."""
    ranked = [row for row in rows if row.ranked]
    complete = (
        sorted(set.intersection(*({process.block for process in row.finished} for row in ranked))) if ranked else []
    )
    if len(ranked) < 2:
        told = f"{digits.counted(len(ranked), 'contestant')} can be ranked; a comparison needs two"
        return Gated(tuple(complete), (), ""), told
    blocks = gated(complete, processes, works * math.comb(len(ranked), 2))
    if len(blocks.kept) < 2:
        return blocks, f"{digits.counted(len(blocks.kept), 'complete block')}; a verdict needs two, and six to claim"
    return blocks, ""


def _in_blocks(rows: Sequence[ContestantResult], blocks: Sequence[int]) -> dict[str, Sequence[ProcessResult]]:
    """For every ranked contestant its processes in these blocks, in their order."""
    by_block = {row.contestant: {process.block: process for process in row.finished} for row in rows if row.ranked}
    return {name: [processes[block] for block in blocks] for name, processes in by_block.items()}
