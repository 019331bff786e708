"""The history of a model as a document: a section for each trend, with its contestants, its changes and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from fairlap import quantity_text
from fairlap.history.changes import Change, SmallestStep
from fairlap.history.history_text import (
    bisect_command,
    bisect_text,
    cause_text,
    commits_text,
    day,
    figure_text,
    no_change_text,
    ratio_head,
    ratio_text,
    subject_text,
    trend_title,
)
from fairlap.history.model_history import ModelHistory, TrendHistory
from fairlap.history.trends import Series, Trend
from fairlap.printed_document import PrintedDocument
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.render.trends.chart import all_trends, one_trend
from fairlap.results.column_definitions.estimate import Estimate

_TURNS = "Contestants of one run took turns, so a change of all of them is a change of the machine."
_MOST_SOURCES = 5
_MOST_PICTURES = 40  # of another tool, which may have thousands of benchmarks
_HOW_TO_READ_OTHERS = "One mark for each value, with the interval of its tool where it has one; lines are medians."
_HOW_TO_READ = "One mark for each run, with its 95 % interval where it has one; lines are the medians between changes."


@dataclass(frozen=True, kw_only=True)
class TrendDocument(Trend):
    changes: tuple[Change, ...]
    smallest_steps: tuple[SmallestStep, ...]
    bisect: tuple[str, ...]  # of each change, the command that finds its commit; empty where it may not be one


class HistoryDocument(PrintedDocument, frozen=True, tag="fairlap.history/1"):
    model: str
    on: str  # contestants or frameworks; empty for all
    since: str
    margin: float  # smaller changes are left out
    trends: list[TrendDocument]
    branch: str = ""  # of git; empty for all
    quantity: str = ""  # as --quantity called it; empty: what contestants were judged by
    foreign: str = ""  # the tool that measured all of it, where that was not fairlap
    sources: tuple[str, ...] = ()  # what it was imported from


def document_of(history: ModelHistory) -> Document:
    every = "all values of the store" if history.foreign else "all runs of the store"
    since = f"since {day(history.since)}" if history.since else every
    since += f" on the branch {history.branch}" if history.branch else ""
    on = f" on {history.on}" if history.on else ""
    of = f": {history.quantity.title}" if history.quantity else ""
    return Document(
        title=f"History of {history.model}{on}{of}",
        facts=(f"{since} · changes of {quantity_text.share(history.margin)} or more", *_facts(history)),
        sections=[_section(each, history) for each in history.trends],
        data=_data(history),
        records=_records(history),
        draw=partial(all_trends, history),
    )


def _facts(history: ModelHistory) -> list[str]:
    if not history.foreign:
        return [_TURNS]
    listed = "; ".join(history.sources[:_MOST_SOURCES])
    more = f" and {len(history.sources) - _MOST_SOURCES} more" if len(history.sources) > _MOST_SOURCES else ""
    return [f"Measured by {history.foreign}, not by fairlap, and no part of its verdicts. From {listed}{more}."]


def _section(found: TrendHistory, history: ModelHistory) -> Section:
    tables = [_contestants(found, history.on)]
    if found.changes:
        tables.append(_changes(found))
    bisected = [bisect_text(each, history.quantity) for each in found.changes if _has_quantity(found)]
    notes = [*filter(None, bisected)] if found.changes else [no_change_text(found, history)]
    picture = None if len(history.trends) > _MOST_PICTURES and history.foreign else _picture(found, history.on)
    return Section(trend_title(found.trend), tables, notes, picture)


def _has_quantity(found: TrendHistory) -> bool:
    """Whether a commit is searched by it; of what another tool measured, by times alone."""
    return not found.trend.foreign or found.trend.is_time


def _contestants(found: TrendHistory, on: str) -> Table:
    heads = ("contestant", "version", "runs", "first", "last")
    return Table("Contestants", heads, [_cells(found.trend, each) for each in found.trend.asked(on)])


def _cells(trend: Trend, series: Series) -> list[str]:
    ends = (series.points[0], series.points[-1])
    versions = " -> ".join(dict.fromkeys(point.version for point in ends if point.version))
    figures = [f"{figure_text(trend, point.compared.value)}, {day(point.began_at)}" for point in ends]
    return [series.contestant, versions, str(len(series.points)), *figures]


def _changes(found: TrendHistory) -> Table:
    size = ratio_head(found.trend)
    heads = ("date", "what changed", size, "first run", "evidence", "commits", "differs between the runs")
    rows = [
        [
            day(change.began_at),
            subject_text(change),
            ratio_text(found.trend, change),
            change.run,
            cause_text(change, found.trend.foreign),
            commits_text(change),
            "; ".join(change.facts),
        ]
        for change in found.changes
    ]
    return Table("Changes", heads, rows).without_empty_columns(after=5)


def _picture(found: TrendHistory, on: str) -> Picture:
    asked = found.trend.asked(on)
    described = f"{found.trend.quantity} of {', '.join(each.contestant for each in asked)} by date"
    if all(len(series.points) < 2 for series in asked):
        return Picture(described, None, "A chart takes two runs.")
    how = _HOW_TO_READ_OTHERS if found.trend.foreign else _HOW_TO_READ
    return Picture(described, partial(one_trend, found, on), how)


def _data(history: ModelHistory) -> HistoryDocument:
    """Of every trend all series, also of contestants that only served for comparison, and the changes."""
    trends = [
        TrendDocument(
            **vars(each.trend),
            changes=each.changes,
            smallest_steps=each.smallest_steps,
            bisect=tuple(
                bisect_command(change, history.quantity) if _has_quantity(each) else "" for change in each.changes
            ),
        )
        for each in history.trends
    ]
    key = history.quantity.key if history.quantity else ""
    return HistoryDocument(
        history.model,
        history.on,
        history.since,
        float(history.margin),
        trends,
        history.branch,
        key,
        history.foreign,
        history.sources,
    )


_OF_THE_TREND = ("work", "conditions", "threads", "device", "machine", "quantity")
_OF_A_RUN = ("version", "run", "began_at", "unit", "figure")


def _records(history: ModelHistory) -> Records:
    """One line for each contestant and run; ``change`` is the cause of a change that begins there."""
    rows = []
    for each in history.trends:
        changes = {(name, change.run): change for change in each.changes for name in change.contestants}
        same = [getattr(each.trend, name) for name in _OF_THE_TREND]
        for series in each.trend.series:
            for point in series.points:
                change = changes.get((series.contestant, point.run))
                ratio = None if change is None else Estimate(change.ratio, change.low, change.high)
                own = [getattr(point, name) for name in _OF_A_RUN]
                rows.append([*same, series.contestant, *own, "" if change is None else change.cause, ratio])
    return Records((*_OF_THE_TREND, "contestant", *_OF_A_RUN, "change", "ratio"), rows, ("figure", "ratio"))
