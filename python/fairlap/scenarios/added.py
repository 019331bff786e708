"""What a scenario adds to a race: settings, figures, compared quantities and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.scenarios.process_result import Period, ProcessResult

E_SETTING = "E_SCENARIO_SETTING"
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Setting(Generic[_Value]):
    """An option of ``compare``, and a key of ``scenario_settings`` in a request file. Plans keep its text."""

    name: str  # as an option, such as "pause"
    meaning: str  # a line of help
    read: Callable[[str], _Value]  # raises ValueError
    metavar: str = "VALUE"

    def value_in(self, given: Mapping[str, str]) -> _Value | None:
        """None where it was not given."""
        text = given.get(self.name)
        if text is None:
            return None
        try:
            return self.read(text)
        except (ValueError, InvalidRequest) as error:
            raise InvalidRequest(f"--{self.name} {text}: {error}", code=E_SETTING) from None


@dataclass(frozen=True)
class AddedFigure:
    """A figure of each contestant that stands in its row beside what contestants are ranked by."""

    name: str  # ends with its unit: _ns, _s, _bytes, _share, _j, _w, _per_s; or it is a plain number
    read: Callable[[ProcessResult], float | None]
    absent: str = "no process has this figure"


@dataclass(frozen=True)
class Quantity:
    """Compared besides the headline. Where a process of a contestant lacks it, none of that contestant's counts."""

    metric: verdict.Metric
    read: Callable[[ProcessResult], float | None]
    is_of: Callable[[ProcessResult], bool]  # whether the process did what this is a quantity of
    headline: verdict.Metric | None = None  # which is the same quantity
    of_rounds: bool = False  # built from the rounds of a block, so that its noise cancels; not from ``read``
    period: Period = "turns"  # in which it was measured


Cells = Mapping[str, Any]  # of a stored row, by column


def _all_count(_cells: Cells) -> bool:
    return True


@dataclass(frozen=True)
class JudgedBefore:
    """The column by which contestants were ranked in stored rows of before rows said so themselves."""

    column: str
    unit: Literal["ns", "s", "1/s"]
    by: Callable[[Cells, bool], str]  # what it is called, also by whether evaluation counted in that race
    reads: tuple[str, ...] = ()  # further columns that it needs
    counts: Callable[[Cells], bool] = _all_count  # whether it was what contestants were ranked by
    of_items: bool = False  # the rate is one of items, and its time that of a batch


@dataclass(frozen=True)
class Picture:
    """A chart of the page. Its points have ``contestant``, ``conditions`` and ``work`` beside what is read."""

    key: str
    title: str
    note: str  # how to read it
    points: Callable[[ProcessResult], Iterable[Mapping[str, float | str]]]
    spec: Callable[[], dict[str, Any]]  # Vega-Lite, without data

    @property
    def table(self) -> str:
        return f"scenario {self.key}"
