"""All that the parts of a report look at: a run, what it shows, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fairlap.errors import WrongRequest
from fairlap.ledger.prices import Price
from fairlap.ledger.rows_of_run import rows_of_run
from fairlap.ledger.schema import Row
from fairlap.race.plan import Conditions, Work
from fairlap.race.results import Contender, Heat, Results, results_of
from fairlap.race.saving import SavedRun

Samples = Callable[[int, str], Mapping[str, npt.NDArray[Any]]]
"""By block and contestant, the raw samples of each quantity; empty where none were kept."""


@dataclass(frozen=True)
class ShownHeat:
    """One work under one kind of conditions, each contestant with its row."""

    work: Work
    heat: Heat
    rows: tuple[tuple[Contender, Row], ...]

    @property
    def conditions(self) -> Conditions:
        return self.heat.conditions


@dataclass(frozen=True)
class ShownRun:
    run: SavedRun
    run_id: str
    results: Results
    heats: tuple[ShownHeat, ...]
    baseline: str
    price: Price | None
    samples: Samples | None

    @property
    def contestants(self) -> list[str]:
        return [name.text for name in self.run.plan.contestants]

    def of_work(self, work: Work) -> list[ShownHeat]:
        """The conditions that the verdict is about come first."""
        own = [heat for heat in self.heats if heat.work == work]
        return sorted(own, key=lambda heat: heat.conditions != self.run.plan.headline)

    def works(self) -> list[Work]:
        """Those of which anything was seen, in the plan's order."""
        seen = {heat.work.label for heat in self.heats}
        return [work for work in self.run.plan.works if work.label in seen]

    def every_row(self) -> Iterator[tuple[ShownHeat, Contender, Row]]:
        return ((heat, contender, row) for heat in self.heats for contender, row in heat.rows)


def shown_run(
    run: SavedRun,
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
        raise WrongRequest(f"the baseline {baseline} is not in this run; there are {', '.join(names)}")
    results = results or results_of(run.plan, run.laps)
    rows = iter(rows_of_run(run, run_id, baseline=baseline, price=price, results=results))
    works = {work.label: work for work in run.plan.works}
    heats = tuple(
        ShownHeat(works[heat.work], heat, tuple((contender, next(rows)) for contender in heat.rows))
        for heat in results.heats
    )
    return ShownRun(run, run_id, results, heats, baseline, price, samples)
