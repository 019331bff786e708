"""What a run shows, computed once and used by the store and by every renderer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from fairlap import quantity_text, verdict
from fairlap.printable import joined_lines
from fairlap.race.counted_blocks import design_of, work_blocks
from fairlap.race.run import Run
from fairlap.request.work import Conditions, Work
from fairlap.results.decision.gate_findings import Finding, Status, candidates_named, findings_of_work
from fairlap.results.prices import Price
from fairlap.results.row import Row
from fairlap.results.row_sequence import Rows
from fairlap.results.rows import rows_of_work
from fairlap.results.scales.scaling import scaling_of
from fairlap.results.scales.scaling_series import ScalingSeries
from fairlap.results.slices.slices_of_run import slices_of_run
from fairlap.results.work_result import ContestantResult, WorkResult, work_result_of

if TYPE_CHECKING:
    from fairlap.results.decision.decision import Decision

Samples = Callable[[int, str], Mapping[str, npt.NDArray[Any]]]
"""By block and contestant, the raw samples of each quantity; empty where none were stored."""


@dataclass(frozen=True)
class Results:
    """What a run shows. ``baseline`` is the contestant that rows are compared with; the fastest one unless given."""

    run: Run
    run_id: str
    work_results: tuple[WorkResult, ...]
    baseline: str = ""
    price: Price | None = None
    samples: Samples | None = None  # where raw samples were stored
    decision: Decision | None = None  # where requirements or a use were given
    scaling: tuple[ScalingSeries, ...] = ()  # of works that were raced at several scales
    max_slowdown: float = verdict.MAX_SLOWDOWN  # beyond it, a contestant is slower than the baseline for a job
    required: tuple[verdict.RequiredChange, ...] = ()  # of other quantities, against that baseline
    findings: tuple[Finding, ...] = ()  # of a race that was to decide about changes of other quantities

    def __repr__(self) -> str:
        """Show a line for each row in an interactive session, with its median and its verdict."""
        lines = []
        for each in self.work_results:
            kept = quantity_text.count(len(each.blocks.kept), "complete block")
            lines.append(f"{self.run.plan.title_of(each.work)} · {each.conditions}: {kept}")
            width = max((len(row.contestant) for row in each.rows), default=0)
            for result, row in each.with_rows():
                lines.append(f"  {row.place or '-':<3} {row.contestant:<{width}}  {_standing(result, row)}")
        return joined_lines(lines) or "no results"

    def _repr_html_(self) -> str:
        """Show the answer, the ranked table and a chart in a notebook; the room that draws them is above this one."""
        drawn: str = resolve_name("fairlap.render.inline.race:html_of")(self)
        return drawn

    @property
    def rows(self) -> Rows:
        return Rows(row for each in self.work_results for row in each.rows)

    @property
    def contestants(self) -> list[str]:
        return [name.text for name in self.run.plan.contestants]

    def under(self, work: Work, conditions: Conditions) -> WorkResult | None:
        return next((each for each in self.work_results if (each.work, each.conditions) == (work, conditions)), None)

    def of_work(self, work: Work) -> list[WorkResult]:
        """Collect a work's results, those under the conditions that the verdict is about first."""
        own = [each for each in self.work_results if each.work == work]
        return sorted(own, key=lambda each: each.conditions != self.run.plan.headline)

    def works(self) -> list[Work]:
        """Those with results, in the plan's order."""
        return [work for work in self.run.plan.works if any(each.work == work for each in self.work_results)]

    def every_row(self) -> Iterator[tuple[WorkResult, ContestantResult, Row]]:
        return ((each, result, row) for each in self.work_results for result, row in each.with_rows())

    def findings_against(self, baseline: str, candidates: Sequence[str] = (), *, max_slowdown: float) -> list[Finding]:
        """Is each candidate within its bounds? All but the baseline where none is named."""
        plan = self.run.plan
        wanted = candidates_named(plan, baseline, candidates)
        found: list[Finding] = []
        for work in plan.works:
            title, work_results = plan.title_of(work), self.of_work(work)
            if not work_results:
                found.append(Finding(Status.NOT_COMPARABLE, f"{title}: no process of it ended"))
                continue
            for name in wanted:
                found += findings_of_work(
                    work_results[0], title, baseline, name, max_slowdown=max_slowdown, required=self.required
                )
        return found

    def trades_against(self, baseline: str, candidates: Sequence[str] = ()) -> list[str]:
        """Write, of each candidate and work, what the faster one of it and the baseline is shown to cost."""
        plan = self.run.plan
        wanted = candidates_named(plan, baseline, candidates)
        pairs = ((work, name) for work in self.works() for name in wanted)
        found = ((work, self.of_work(work)[0].trade(name, baseline)) for work, name in pairs)
        return [f"{plan.title_of(work)}: {text}" for work, text in found if text]

    def order_differs(self, work: Work) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Rank the contestants in both orders, when controlling the conditions makes two of them swap places.

        A swap counts when no process of the one overlaps with any of the other, under both conditions.
        """
        found, controlled = self.under(work, "as-found"), self.under(work, "controlled")
        if found is None or controlled is None:
            return None
        ranges = [
            {each.contestant: each.range_ns for each in result.contestants if each.ranked}
            for result in (found, controlled)
        ]
        both = [name for name in ranges[0] if name in ranges[1]]
        if not any(
            _below(ranges[0][a], ranges[0][b]) and _below(ranges[1][b], ranges[1][a]) for a in both for b in both
        ):
            return None
        return tuple(both), tuple(name for name in ranges[1] if name in both)


def _standing(result: ContestantResult, row: Row) -> str:
    """Describe what it is ranked by with the interval, compared with the baseline; or what became of it."""
    if result.figure is None or (row.place is None and row.message):
        return result.trouble_with_code
    figure = result.figure
    if figure.value is None:
        parts = [quantity_text.count(len(figure.modes.modes), "mode")]
    else:
        parts = [quantity_text.duration_interval(figure.value, figure.low or None, figure.high)]
    if row.place == "1" and row.baseline == row.contestant:
        parts.append("fastest")
    elif row.ratio is not None and row.verdict is not None and row.baseline != row.contestant:
        ratio = quantity_text.ratio_interval(row.ratio.value, row.ratio.low, row.ratio.high)
        parts.append(f"{row.verdict}, {ratio} times {row.baseline}")
    return "  ".join(parts)


def _below(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] < other[0]


def results_of(
    run: Run,
    run_id: str = "",
    *,
    baseline: str = "",
    price: Price | None = None,
    samples: Samples | None = None,
    max_slowdown: float | None = None,
    required: Sequence[verdict.RequiredChange] | None = None,
) -> Results:
    """Judge a run: one family of comparisons for all works under each kind of conditions.

    A race with a gate has its baseline and its bounds, unless others are given. Neither baseline nor slowdown changes
    an interval or a verdict; quantities that are ``required`` share one error rate.
    """
    gate = run.plan.gate or verdict.Gate(baseline)
    baseline = baseline or gate.baseline
    changes = run.plan.required if required is None else tuple(required)
    quantities = tuple(dict.fromkeys(each.quantity for each in changes))
    found: list[WorkResult] = []
    for conditions in ("controlled", "as-found"):
        bases = work_blocks(run.plan, run.processes, conditions)
        tables = [basis.table for basis in bases if basis.table is not None]
        design = design_of(run.plan, tables) if tables else verdict.Design()
        comparisons = verdict.judge(tables, alpha=run.plan.alpha, design=design) if tables else ()
        levels = verdict.levels_at_end(tables, alpha=run.plan.alpha, design=design)
        by_work = {table.workload: level for table, level in zip(tables, levels, strict=True)}
        found += [
            replace(
                work_result_of(basis, comparisons),
                continued_after=run.continued_after,
                level=by_work.get(basis.work.id, run.plan.alpha),
                required=quantities,
            )
            for basis in bases
        ]
    scaling, slices = scaling_of(run.plan, found), slices_of_run(run, baseline)
    results = Results(
        run,
        run_id,
        tuple(replace(each, rows=rows_of_work(run, run_id, each, baseline, price, scaling, slices)) for each in found),
        baseline,
        price,
        samples,
        scaling=scaling,
        max_slowdown=gate.max_slowdown if max_slowdown is None else max_slowdown,
        required=changes,
    )
    if required is not None or not changes or run.plan.gate is None:
        return results
    return replace(results, findings=tuple(results.findings_against(gate.baseline, max_slowdown=gate.max_slowdown)))
