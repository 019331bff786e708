"""The history of what another tool measured: a trend of its own for each benchmark, beside none of fairlap's.

Its benchmarks did not take turns, so nothing tells a change of the code from one of the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase

from fairlap.errors import InvalidRequest
from fairlap.history.changes import changes_in, smallest_steps
from fairlap.history.model_history import ModelHistory, TrendHistory, history_of
from fairlap.history.trends import Series, Trend
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.store.errors import NoSuchRun
from fairlap.store.figures import RecordedFigure
from fairlap.store.file_store import Store
from fairlap.store.foreign_points import TOOLS, ForeignPoint, Tool, foreign_points, foreign_sources
from fairlap.suggestions import did_you_mean

_Key = tuple[str, str, str, str, str]
_TIMES = {"seconds": "s", "second": "s", "s": "s", "sec": "s", "ns": "ns", "ns/op": "ns", "ns/iter": "ns"}
_SIZES = ("bytes", "B", "B/op")
_MOST_WITH_STEPS = 200  # series for which the smallest step is looked for, which takes 20 times as long as the changes


def foreign_history_of(
    store: Store, tool: Tool, *, on: str = "", since: str = "", branch: str = "", margin: float
) -> ModelHistory:
    """``on`` names benchmarks, or a pattern of them."""
    every = store.ask(foreign_points, tool)
    known = {each.benchmark for each in every}
    points = [
        each
        for each in every
        if _is_asked(each.benchmark, on) and each.at >= since and branch in ("", each.branch) and each.value > 0
    ]
    if not points:
        raise NoSuchRun(_why_nothing(store, tool, on, known))
    by_series: dict[_Key, list[ForeignPoint]] = defaultdict(list)
    for each in points:
        by_series[each.project, each.machine, each.environment, each.benchmark, each.unit].append(each)
    with_steps = len(by_series) <= _MOST_WITH_STEPS
    trends = [_history(tool, own, margin, with_steps=with_steps) for _, own in sorted(by_series.items())]
    sources = [
        f"{each.source}{f' of {each.project}' if each.project else ''}, imported {each.imported_at[:10]}"
        for each in store.ask(foreign_sources)
        if each.tool == tool
    ]
    return ModelHistory(tool, "", since, branch, margin, tuple(trends), None, tool, tuple(sources))


def any_history_of(
    store: Store, model: str, *, on: str = "", since: str = "", branch: str = "", quantity: str = "", margin: float
) -> ModelHistory:
    """Of a model, or of another tool by its name."""
    if model not in TOOLS:
        return history_of(store, model, on=on, since=since, branch=branch, quantity=quantity, margin=margin)
    if quantity:
        raise InvalidRequest(f"--quantity is of runs of fairlap, and {model} measured other things; leave it out")
    return foreign_history_of(store, model, on=on, since=since, branch=branch, margin=margin)


def _is_asked(benchmark: str, on: str) -> bool:
    """Compare without reading brackets as a set of characters, which names of benchmarks have."""
    return not on or on in (benchmark, benchmark.partition("(")[0]) or fnmatchcase(benchmark, on.replace("[", "[[]"))


def _history(tool: Tool, points: Sequence[ForeignPoint], margin: float, *, with_steps: bool) -> TrendHistory:
    figures, facts = [], {}
    for number, each in enumerate(points):
        run = f"{each.at} {number:06}"  # in the order of the times
        facts[run] = {"git revision": each.commit, "git branch": each.branch}
        figures.append(_figure(each, run))
    first = points[0]
    title = " · ".join(filter(None, (first.project, first.benchmark)))
    machine = ", ".join(filter(None, (first.environment, first.machine))) or "unknown machine"
    series = Series(first.benchmark, tool, tuple(figures))
    runs = tuple(each.run for each in figures)
    quantity = f"measured by {tool}"
    trend = Trend(title, "", None, "", machine, quantity, figures[0].unit, runs, (series,), tool)
    changes = changes_in(trend, facts, margin=margin)
    steps = smallest_steps(trend, changes, margin=margin) if with_steps else []
    return TrendHistory(trend, tuple(changes), tuple(steps))


def _figure(point: ForeignPoint, run: str) -> RecordedFigure:
    unit = _TIMES.get(point.unit) or ("B" if point.unit in _SIZES else point.unit.replace("1/s", "per s"))
    return RecordedFigure(
        run, point.at, point.benchmark, point.tool, "", "", point.benchmark, point.benchmark, "", "", None, "",
        f"measured by {point.tool}", unit, Estimate(point.value, point.low, point.high),
    )  # fmt: skip


def _why_nothing(store: Store, tool: Tool, on: str, known: set[str]) -> str:
    if not known:
        return f"nothing of {tool} is stored in {store.where}; `fairlap runs import FILE` reads what it measured"
    meant = did_you_mean(on, known) if on else ""
    return f"{tool} measured no such benchmark{f' as {on!r}' if on else ''} then; {meant or 'leave an option out'}"
