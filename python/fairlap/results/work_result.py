"""What one work showed under one kind of conditions: its contestants, their comparisons, and a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median_low

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.race import counted_blocks
from fairlap.race.counted_blocks import GatedBlocks, WorkBlocks, halves_of
from fairlap.race.equal_work.answers import is_unknown
from fairlap.race.equal_work.training_answers import FIRST_EPOCH
from fairlap.race.precision_drop import Drop
from fairlap.request.names import THREADS
from fairlap.request.work import Conditions, Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.columns.learning.learning_curves import curves_apart
from fairlap.results.quantities.other_quantities import QuantityComparisons, compare_other_quantities
from fairlap.results.row import Row
from fairlap.scenarios.contract import Judged, Unqualified, of_time_ns
from fairlap.scenarios.process_result import (
    PERIODS,
    LargestBatch,
    Outcome,
    Period,
    ProcessResult,
    SmallestMemory,
)

PAGE_FAULTS = "page_faults"
_ERROR_RATE = 0.05  # of one judgement; those of several add up (Bonferroni)
_MOST_SCATTER = 2.0  # as of the ratios of blocks
_WHEN: dict[Period, str] = {"turns": "while single calls were timed", "after_turns": "after single calls were timed"}


@dataclass(frozen=True)
class ContestantResult:
    """One contestant on one work under one kind of conditions."""

    contestant: str
    conditions: Conditions
    processes: tuple[ProcessResult, ...]
    judged_by: Judged
    judged: Estimate | None = None  # what it is ranked by, in the unit of ``judged_by``
    figure: verdict.ContestantFigure | None = None  # the same as times, with modes; None when no process has one
    causes: tuple[verdict.ModeCause, ...] = ()
    drop: Drop = Drop()  # noqa: RUF009  (frozen)
    unqualified: Unqualified | None = None
    notices: tuple[Notice, ...] = ()  # of its scenario
    figures_ns: tuple[float, ...] = ()  # as times, of each finished process that has such a figure

    @property
    def finished(self) -> tuple[ProcessResult, ...]:
        return tuple(process for process in self.processes if process.finished)

    @property
    def trouble(self) -> str:
        """Why it is not ranked, or what went wrong in some of its processes; empty when all finished."""
        return counted_blocks.trouble(self.processes) or ("" if self.unqualified is None else self.unqualified.why)

    @property
    def code(self) -> str:
        """Of the trouble; empty when all finished."""
        worst = self.worst_outcome
        if worst == "unqualified" and self.unqualified is not None:
            return self.unqualified.code
        return next((each.code for each in self.processes if each.outcome == worst), "")

    @property
    def trouble_with_code(self) -> str:
        return f"{self.trouble} [{self.code}]" if self.code else self.trouble

    @property
    def worst_outcome(self) -> Outcome:
        worst = counted_blocks.worst_outcome(self.processes)
        return "unqualified" if worst == "finished" and self.unqualified else worst

    @property
    def ranked(self) -> bool:
        return counted_blocks.is_ranked(self.processes) and not self.unqualified

    @property
    def median_ns(self) -> float:
        """What it is ranked by, as a time."""
        assert self.judged is not None
        return self.judged_by.time_ns(self.judged.value)

    @property
    def call_ns(self) -> float:
        """The time of a call in a process in the middle."""
        return median_low(process.call_ns for process in self.finished)

    @property
    def range_ns(self) -> tuple[float, float]:
        return min(self.figures_ns), max(self.figures_ns)

    @property
    def scattered(self) -> Notice | None:
        """A warning when its processes differ more than twofold and are too few for an interval that shows it."""
        figure = self.figure
        if figure is None or figure.low is None or figure.high is None:  # no process, or several modes
            return None
        has_interval = figure.low > 0 and np.isfinite(figure.high)
        least, most = self.range_ns
        if has_interval or most <= _MOST_SCATTER * least:
            return None
        unit = self.judged_by.unit
        low, high = (quantity_text.figure(each, unit) for each in sorted(of_time_ns(ns, unit) for ns in self.range_ns))
        count, times = quantity_text.count(len(self.figures_ns), "process"), quantity_text.number(most / least, 2)
        text = f"its {count} gave from {low} to {high}, {times} times apart; its figure is the middle of them"
        return Notice("W_SCATTERED_PROCESSES", text)

    @property
    def smallest_memory(self) -> SmallestMemory | None:
        """One search for a contestant on a work, under the conditions of the verdict."""
        return next((process.smallest_memory for process in self.processes if process.smallest_memory), None)

    @property
    def largest_batch(self) -> LargestBatch | None:
        """Looked for like the smallest memory."""
        return next((process.largest_batch for process in self.processes if process.largest_batch), None)

    def median_of(self, counter: str) -> float | None:
        values = [process.per_call[counter] for process in self.finished if counter in process.per_call]
        return float(np.median(values)) if values else None

    @property
    def worst_relative_error(self) -> float | None:
        """Infinite when an answer was not finite. Over an epoch rounding grows, so that does not count."""
        errors = (error for process in self.processes for error in process.errors)
        return max((each.distance for each in errors if each.has_distance and each.when != FIRST_EPOCH), default=None)


@dataclass(frozen=True)
class WorkResult:
    """All that one work showed under one kind of conditions."""

    basis: WorkBlocks
    contestants: tuple[ContestantResult, ...]  # by rank, then by what is shown; then those that are not ranked
    comparisons: tuple[verdict.Comparison, ...] = ()
    standing: verdict.Standing | None = None
    rows: tuple[Row, ...] = ()  # one for each contestant, in their order
    continued_after: tuple[int, ...] = ()  # blocks of the run, each time that it was continued after it had ended
    level: float = verdict.ERROR_RATE  # of each other quantity
    required: tuple[str, ...] = ()  # quantities that a gate requires, which share this level

    @property
    def work(self) -> Work:
        return self.basis.work

    @property
    def conditions(self) -> Conditions:
        return self.basis.conditions

    @property
    def blocks(self) -> GatedBlocks:
        return self.basis.gated

    @property
    def table(self) -> verdict.BlockTable | None:
        return self.basis.table

    def comparison(self, name: str, baseline: str) -> verdict.Comparison | None:
        """Of the first with the second, where the two were compared."""
        own = next((each for each in self.comparisons if {each.a, each.b} == {name, baseline}), None)
        return own if own is None or own.a == name else own.reversed()

    @property
    def why_no_verdict(self) -> str:
        return self.basis.why_no_verdict

    @property
    def busy(self) -> Notice | None:
        """A warning when others took much of the machine while the judged figure was measured, or another one."""
        for period in (self.basis.judged.period, *PERIODS):
            stolen = self.basis.stolen_in(period)
            if stolen.is_worth_saying:
                when = "" if period == self.basis.judged.period else f"{_WHEN[period]}, "
                text = f"{when}{stolen.what}; times and ratios are those under this load only"
                return Notice("W_BUSY_MACHINE", text)
        return None

    @property
    def continued(self) -> Notice | None:
        """A warning when a claim rests on blocks that were added after the run had ended without it."""
        if not self.continued_after:
            return None
        before = sum(block < self.continued_after[0] for block in self.blocks.kept)
        if not any((each.decided_after_blocks or 0) > before for each in self.comparisons):
            return None
        most = _ERROR_RATE * (1 + len(self.continued_after))
        text = (
            f"the run ended without this verdict and was continued, so equals are called different in up to "
            f"{quantity_text.share(most)} of such runs; a rerun has {quantity_text.share(_ERROR_RATE)} again"
        )
        return Notice("W_CONTINUED", text)

    @cached_property
    def curves_apart(self) -> Notice | None:
        """A warning when contestants did not learn alike."""
        return curves_apart({each.contestant: each.processes for each in self.contestants if each.ranked})

    @property
    def mixed(self) -> Notice | None:
        """A warning when contestants with settings that were searched for are ranked with others."""
        ranked = self.basis.ranked
        best = [name for name in ranked if name in self.basis.searched]
        if not best or len(best) == len(ranked):
            return None
        text = f"settings of {', '.join(best)} were found by a search; the other contestants were raced as named"
        return Notice("W_MIXED_DIVISIONS", text)

    @property
    def unknown_settings(self) -> Notice | None:
        """A warning when contestants that cannot know their threads are ranked with others."""
        ranked = [each for each in self.contestants if each.ranked]
        unknown = [each.contestant for each in ranked if any(is_unknown(p.in_force, THREADS) for p in each.finished)]
        if not unknown:
            return None
        text = (
            f"how many threads {', '.join(unknown)} computes with is not known, nor its other settings: what is "
            "compared is what was set up, not equal resources"
        )
        return Notice("W_UNKNOWN_SETTINGS", text)

    @cached_property
    def other_quantities(self) -> tuple[QuantityComparisons, ...]:
        """Percentiles, throughput, times to the first answer, memory and more, compared in the same blocks."""
        if self.table is None:
            return ()
        return compare_other_quantities(
            self.work,
            self.basis.compared,
            self.basis.metric,
            level=self.level,
            required=self.required,
            starved=self.basis.starved,
        )

    def other_comparisons(self, name: str, baseline: str) -> dict[str, verdict.Comparison]:
        """Collect those of the first with the second, by the key of the quantity."""
        found = (each for other in self.other_quantities for each in other.comparisons)
        pair = (each for each in found if {each.a, each.b} == {name, baseline})
        return {each.metric.key: each if each.a == name else each.reversed() for each in pair}

    def trade(self, name: str, baseline: str) -> str:
        """Write what the better of the two is shown to cost; empty where it costs nothing.

        All quantities that it may name share one level: the required ones, or else all of them.
        """
        judged = self.comparison(name, baseline)
        others = self.other_comparisons(name, baseline)
        prices = {key: each for key, each in others.items() if not each.metric.is_speed}
        if self.required:
            named = [each for key, each in prices.items() if key in self.required]
        else:
            named = [each for each in prices.values() if each.p_adjusted <= self.level / len(prices)]
        return "" if judged is None else verdict.trade_sentence(judged, named)

    @property
    def trades(self) -> list[str]:
        """Of all pairs."""
        return [text for each in self.comparisons if (text := self.trade(each.a, each.b))]

    def with_rows(self) -> Iterator[tuple[ContestantResult, Row]]:
        return zip(self.contestants, self.rows, strict=True)


def work_result_of(basis: WorkBlocks, comparisons: Sequence[verdict.Comparison]) -> WorkResult:
    """Without its rows, which name the run."""
    contestants = sorted(
        (_contestant(name, basis, own) for name, own in basis.processes.items()),
        key=lambda each: (not each.ranked, float("inf") if each.judged is None else each.median_ns),
    )
    if basis.table is None:
        return WorkResult(basis, tuple(contestants))
    own = tuple(each for each in comparisons if each.workload == basis.work.id)
    shown_ns = {each.contestant: each.median_ns for each in contestants if each.judged is not None}
    standing = verdict.standing(basis.table, own, shown_ns)
    contestants.sort(key=lambda each: standing.position(each.contestant))
    return WorkResult(basis, tuple(contestants), own, standing)


def _contestant(name: str, basis: WorkBlocks, processes: tuple[ProcessResult, ...]) -> ContestantResult:
    judged = basis.judged
    result = ContestantResult(
        name,
        basis.conditions,
        processes,
        judged,
        drop=basis.drops.get(name, Drop()),
        unqualified=basis.unqualified.get(name),
        notices=basis.notices.get(name, ()),
    )
    with_figure = [process for process in result.finished if basis.has_figure(process)]
    values = [value for process in with_figure if (value := judged.read(process)) is not None]
    if not values or len(values) < len(with_figure):
        return result
    figures_ns = tuple(judged.figure_ns(process) for process in with_figure)
    figure = verdict.contestant_figure(np.log(figures_ns), halves=halves_of(with_figure, judged))
    causes = verdict.mode_causes(figure.modes, _covariates(with_figure))
    in_unit = figure if judged.unit == "ns" else verdict.contestant_figure(np.log(values))
    estimate = Estimate.of(in_unit) if figure.value is not None else None
    return replace(
        result,
        judged=estimate or Estimate(median_low(values)),
        figure=figure,
        causes=causes,
        figures_ns=figures_ns,
    )


def _covariates(processes: Sequence[ProcessResult]) -> dict[str, Sequence[float] | Sequence[str]]:
    """Collect what may separate the modes, without counts that some process lacks."""
    named = {"page faults per call": PAGE_FAULTS, "migrations": "migrations"}
    covariates: dict[str, Sequence[float] | Sequence[str]] = {
        shown: [process.per_call[key] for process in processes]
        for shown, key in named.items()
        if all(key in process.per_call for process in processes)
    }
    covariates["core"] = [",".join(map(str, process.cores)) for process in processes]
    covariates["position in block"] = [float(process.position) for process in processes]
    return covariates
