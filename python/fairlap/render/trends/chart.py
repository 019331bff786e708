"""The series of each trend as a picture: runs with their intervals, the level between changes, and the changes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fairlap.history.changes import Change
from fairlap.history.history_text import ratio_of, subject_text, trend_title
from fairlap.history.model_history import ModelHistory, TrendHistory
from fairlap.history.trends import Series, Trend
from fairlap.render.charts.parts.chart import duration_labels, size_labels
from fairlap.render.charts.parts.labels import label_expression
from fairlap.render.charts.parts.libraries import drawn
from fairlap.render.charts.parts.look import Look

_WIDTH, _HEIGHT, _LINE = 860, 240, 14
_NS_PER_S = 1e9
_DAY, _MONTH, _TIME = "%b %d", "%b %Y", "%H:%M"
_DATES = {"year": "%Y", "quarter": _MONTH, "month": _MONTH, "week": _DAY, "date": _DAY, "day": _DAY} | dict.fromkeys(
    ("hours", "minutes"), _TIME
)


def all_trends(history: ModelHistory, look: Look) -> str:
    """One above the other, each with its title."""
    spec = {
        "vconcat": [_spec(each, history.on, look, title=True) for each in history.trends],
        "resolve": {"scale": dict.fromkeys(("x", "y", "color"), "independent")},
        "spacing": 40,
    }
    return drawn(spec, look)


def one_trend(found: TrendHistory, on: str, look: Look) -> str:
    """Draw it for a page, which has the title."""
    return drawn(_spec(found, on, look, title=False), look)


def _spec(found: TrendHistory, on: str, look: Look, *, title: bool) -> dict[str, Any]:
    """Return a chart whose axis of times is logarithmic: equal distances are equal ratios."""
    asked = found.trend.asked(on)
    names = [each.contestant for each in asked]
    colour = {
        "field": "contestant",
        "type": "nominal",
        "scale": {"domain": names, "range": look.colours(len(names))},
        "legend": {"title": None, "orient": "top", "symbolOpacity": 1, "labelExpr": label_expression(names)},
    }
    x = {"field": "began_at", "type": "temporal", "title": None, "axis": {"format": _DATES, "tickCount": 8}}
    labels = _labels(found.trend)
    axis = {"title": found.trend.quantity, **labels, "tickCount": 5}
    marks = _marks(found, asked)
    padding = max([20, *(_LINE * len(each["text"]) + 8 for each in marks)])  # room for the texts above the series
    scale = {"type": "log", "nice": False, "padding": padding}
    y = {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}
    bounds = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [record for each in asked for record in _points(found.trend, each)]},
            "encoding": {"x": x, "y": y, "color": colour},
            "layer": [
                {"mark": {"type": "rule", "opacity": 0.35}, "encoding": bounds},
                {"mark": {"type": "point", "filled": True, "size": 14, "opacity": 0.8}},
            ],
        },
        {
            "data": {"values": [record for each in asked for record in _levels(found.trend, each, found.changes)]},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": colour, "detail": {"field": "level"}},
        },
        {
            "data": {"values": marks},
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": look.muted},
            "encoding": {"x": x},
        },
        {
            "data": {"values": marks},
            "mark": {"type": "text", "align": "left", "dx": 4, "baseline": "top", "fontSize": 11, "lineHeight": _LINE},
            "encoding": {"x": x, "y": {"value": 2}, "text": {"field": "text"}},
        },
    ]  # fmt: skip
    head = {"title": {"text": trend_title(found.trend), "anchor": "start", "offset": 14}} if title else {}
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers, **head}


def _labels(trend: Trend) -> dict[str, str]:
    if trend.is_time and not trend.is_rate:
        return {"labelExpr": duration_labels()}
    if trend.unit == "B":
        return {"labelExpr": size_labels()}
    return {"format": "~%" if trend.unit == "share" else "~s"}


def _or(end: float | None, value: float) -> float:
    """Draw no interval where there is none."""
    return value if end is None else end


def _shown(trend: Trend, compared: float) -> float:
    return _NS_PER_S / compared if trend.is_rate else compared


def _points(trend: Trend, series: Series) -> list[dict[str, Any]]:
    return [
        {
            "contestant": series.contestant,
            "began_at": point.began_at,
            "value": _shown(trend, compared.value),
            "low": _shown(trend, _or(compared.low, compared.value)),
            "high": _shown(trend, _or(compared.high, compared.value)),
        }
        for point in series.points
        if (compared := point.compared)
    ]


def _levels(trend: Trend, series: Series, changes: tuple[Change, ...]) -> list[dict[str, Any]]:
    """Draw a line from the first to the last run between two changes, at their median."""
    begin = [change.run for change in changes if series.contestant in change.contestants]
    edges = ["", *begin, "~"]
    found = []
    for number, (start, end) in enumerate(pairwise(edges)):
        own = [point for point in series.points if start <= point.run < end]
        level = float(np.median([_shown(trend, point.compared.value) for point in own])) if own else 0.0
        for point in own[:1] + own[-1:]:
            common = {"contestant": series.contestant, "level": f"{series.contestant} {number}"}
            found.append({**common, "began_at": point.began_at, "value": level})
    return found


def _marks(found: TrendHistory, asked: tuple[Series, ...]) -> list[dict[str, Any]]:
    """Name what changed with a run, each on a line of its own: several names at one place would not be legible."""
    texts: dict[str, list[str]] = {}
    for change in found.changes:
        texts.setdefault(change.began_at, []).append(_text(found.trend, change, asked))
    return [{"began_at": began_at, "text": lines} for began_at, lines in texts.items()]


def _text(trend: Trend, change: Change, asked: tuple[Series, ...]) -> str:
    share = f"{100 * (ratio_of(trend, change)[0] - 1):+.1f} %"
    name = "machine" if change.cause == "machine" else subject_text(change) if len(asked) > 1 else change.versions[1]
    return f"{name} {share}"
