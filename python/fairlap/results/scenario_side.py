"""The results side of scenarios: what each computes for the columns of a row.

A scenario names its own in ``Scenario.results_side``. Every row has the columns of all scenarios, so all are asked, and
give the reason where theirs are absent.
"""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from fairlap.engine.measurement import Notice
from fairlap.plugins import object_at
from fairlap.request.work import Work
from fairlap.results.column_definitions.about import ScenarioColumns
from fairlap.results.estimates import Cell
from fairlap.results.prices import Price
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.contract import Scenario, scenarios


class ResultsSide:
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        """Compute its columns that may be absent; and of other columns those that have no value under it."""
        return {}

    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        """Compute its columns that are never absent; and of ``answers`` what else is to be said of them."""
        return {}

    def costs(self, row: Row, price: Price) -> dict[str, Cell]:
        """Compute its columns of money again, at another price."""
        return {}

    def notices(self, result: ContestantResult) -> list[Notice]:
        """Warn about its figure."""
        return []


def all_absent(columns: type[ScenarioColumns], why: str) -> dict[str, Cell]:
    """Give one reason for every column of a scenario that may be absent."""
    return dict.fromkeys(_that_may_be_absent(columns), Cell(None, why))


@cache
def _that_may_be_absent(columns: type[ScenarioColumns]) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(columns).items() if NoneType in get_args(hint))


def results_side_of(scenario: Scenario) -> ResultsSide:
    place = scenario.results_side
    return object_at(place, ResultsSide, "the results side of a scenario") if place else ResultsSide()


def results_sides() -> tuple[ResultsSide, ...]:
    return tuple(map(results_side_of, scenarios()))
