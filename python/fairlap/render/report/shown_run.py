"""All that the parts of a report look at: a run, what it shows, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.request.work import Conditions, Work
from fairlap.results.prices import Price
from fairlap.results.results import ContestantResult, Results, WorkResult, results_of
from fairlap.results.row import Row
from fairlap.results.rows import rows_of_run

Samples = Callable[[int, str], Mapping[str, npt.NDArray[Any]]]
"""By block and contestant, the raw samples of each quantity; empty where none were kept."""


@dataclass(frozen=True)
class ShownWork:
    """One work under one kind of conditions, each contestant with its row."""

    work: Work
    work_result: WorkResult
    rows: tuple[tuple[ContestantResult, Row], ...]

    @property
    def conditions(self) -> Conditions:
        return self.work_result.conditions


@dataclass(frozen=True)
class ShownRun:
    run: Run
    run_id: str
    results: Results
    work_results: tuple[ShownWork, ...]
    baseline: str
    price: Price | None
    samples: Samples | None

    @property
    def contestants(self) -> list[str]:
        return [name.text for name in self.run.plan.contestants]

    def of_work(self, work: Work) -> list[ShownWork]:
        """The conditions that the verdict is about come first."""
        own = [work_result for work_result in self.work_results if work_result.work == work]
        return sorted(own, key=lambda work_result: work_result.conditions != self.run.plan.headline)

    def works(self) -> list[Work]:
        """Those of which anything was seen, in the plan's order."""
        seen = {work_result.work.label for work_result in self.work_results}
        return [work for work in self.run.plan.works if work.label in seen]

    def every_row(self) -> Iterator[tuple[ShownWork, ContestantResult, Row]]:
        return ((work_result, result, row) for work_result in self.work_results for result, row in work_result.rows)


def shown_run(
    run: Run,
    run_id: str,
    *,
    samples: Samples | None = None,
    baseline: str = "",
    price: Price | None = None,
    results: Results | None = None,
) -> ShownRun:
    """``results`` where the caller has them already."""
    names = [name.text for name in run.plan.contestants]
    if baseline and baseline not in names:
        raise InvalidRequest(f"the baseline {baseline} is not in this run; there are {', '.join(names)}")
    results = results or results_of(run.plan, run.processes)
    rows = iter(rows_of_run(run, run_id, baseline=baseline, price=price, results=results))
    works = {work.label: work for work in run.plan.works}
    work_results = tuple(
        ShownWork(
            works[work_result.work],
            work_result,
            tuple((result, next(rows)) for result in work_result.rows),
        )
        for work_result in results.work_results
    )
    return ShownRun(run, run_id, results, work_results, baseline, price, samples)
