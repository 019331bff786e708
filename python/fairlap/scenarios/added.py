"""What a scenario adds to a race: settings, figures, compared quantities and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairlap import verdict
from fairlap.scenarios.process_result import Period, ProcessResult
from fairlap.scenarios.setting import Setting as Setting


@dataclass(frozen=True)
class AddedFigure:
    """A figure of each contestant that stands in its row beside what contestants are ranked by."""

    name: str  # ends with its unit: _ns, _s, _bytes, _share, _j, _w, _per_s; or it is a plain number
    read: Callable[[ProcessResult], float | None]
    absent: str = "no process has this figure"
    # Of all processes, in place of their median: the figure and the ends of its interval; infinite where it has none.
    over: Callable[[Sequence[float]], tuple[float, float, float]] | None = None


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
    """A chart of the page. Its points have ``contestant``, ``conditions``, ``work_id`` and ``work``, its label."""

    key: str
    title: str
    note: str  # how to read it
    points: Callable[[ProcessResult], Iterable[Mapping[str, float | str]]]
    spec: Callable[[], dict[str, Any]]  # Vega-Lite, without data
    over_works: bool = False  # of all works together, rather than of each

    @property
    def table(self) -> str:
        return f"scenario {self.key}"
