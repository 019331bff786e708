"""The render side of scenarios: the command that asks for one again, and what a contestant's lines and charts show.

A scenario names its own in ``Scenario.render_side``. Rows name no scenario: every side is asked, and shows nothing
of a row without its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fairlap.plugins import object_at
from fairlap.race.planning.plan import Plan
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.scenarios.contract import Scenario, scenarios

if TYPE_CHECKING:
    from fairlap.render.charts.parts.chart import Chart

Words = list[str]


class NoCommand(Exception):
    """The options of the command line do not say what this plan has."""


@dataclass(frozen=True)
class Summary:
    """What a scenario found of a contestant, in words under a heading: all of it, or what a column has."""

    head: str
    field: str  # of the row: the reason for its absence is the summary's
    text: Callable[[Row], str]  # empty where there is nothing


class RenderSide:
    lacks: ClassVar[frozenset[str]] = frozenset()  # options that `fairlap compare` has, and its command does not
    summaries: ClassVar[tuple[Summary, ...]] = ()
    columns: ClassVar[tuple[Summary, ...]] = ()  # of tables, next to what is ranked, where that is no call
    tables: ClassVar[Mapping[str, Callable[[Results], Iterator[dict[str, Any]]]]] = {}  # of its charts, by name
    sections: ClassVar[Mapping[str, str]] = {}  # of the page that its charts are in, before the others, with titles

    def words(self, plan: Plan) -> Words:
        """Give the options that ask for it. Raises NoCommand where none do."""
        return []

    def lines(self, row: Row) -> list[str]:
        """Describe what stands below the line of a contestant, besides the summaries."""
        return []

    def charts(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
        """Draw its tables; nothing where they are empty."""
        return []

    def beside_time(self, row: Row) -> str:
        """Say in two words what a time in a table of many works is worth; empty where a time says all."""
        return ""

    def notes(self, rows: Sequence[Row]) -> list[str]:
        """Explain the words of the lines and columns of a work's table, below it."""
        return []


def render_side_of(scenario: Scenario) -> RenderSide:
    place = scenario.render_side
    return object_at(place, RenderSide, "the render side of a scenario") if place else RenderSide()


def render_sides() -> tuple[RenderSide, ...]:
    return tuple(map(render_side_of, scenarios()))


def summaries() -> tuple[Summary, ...]:
    return tuple(each for side in render_sides() for each in side.summaries)


def columns_of_scenarios() -> tuple[Summary, ...]:
    return tuple(each for side in render_sides() for each in side.columns)


def notes_on(rows: Sequence[Row]) -> list[str]:
    return [note for side in render_sides() for note in side.notes(rows)]


def with_words_beside(time: str, row: Row) -> str:
    return ", ".join(filter(None, (time, *(side.beside_time(row) for side in render_sides()))))


def require_command(condition: bool) -> None:
    if not condition:
        raise NoCommand


def number_word(value: float) -> str:
    """With all its digits, and none besides."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
