"""What became of each mistake in each framework, as a grid."""

from __future__ import annotations

from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import spec_of
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.scenarios.mistakes.results.mistakes_result import MistakesResult, Outcome

_CELL_WIDTH, _CELL_HEIGHT = 110, 22
_ORDER: tuple[Outcome, ...] = ("error", "warning", "silent", "works", "crash", "hang")


def chart_of(result: MistakesResult, look: Look) -> str:
    alt = altair()
    points: list[dict[str, Any]] = [
        {"contestant": row.contestant, "mistake": row.mistake, "outcome": row.outcome}
        for row in result.rows
        if row.outcome != "absent"
    ]
    if not points:
        raise InvalidRequest("there is nothing to draw: no contestant ran a mistake", code="E_CONTESTANT")
    used = [each for each in _ORDER if any(point["outcome"] == each for point in points)]
    colours = dict(zip(_ORDER, look.colours(len(_ORDER)), strict=True))
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=used, range=[colours[each] for each in used]),
        legend=alt.Legend(title=None, orient="top"),
    )
    names = list(dict.fromkeys(point["mistake"] for point in points))
    contestants = [each.contestant for each in result.contestants]
    x = alt.X("contestant:N", sort=contestants, axis=alt.Axis(title=None, orient="top", labelAngle=0))
    y = alt.Y("mistake:N", sort=names, axis=alt.Axis(title=None, labelLimit=220))
    base = alt.Chart(alt.Data(values=points)).encode(x=x, y=y)
    marks = base.mark_point(size=140, filled=True, opacity=1).encode(color=colour, shape=_shape(used))
    chart = marks.properties(width=_CELL_WIDTH * len(contestants), height=_CELL_HEIGHT * len(names))
    return drawn(spec_of(chart), look)


def _shape(used: list[Outcome]) -> Any:
    """Also by shape, for those who do not tell the colours apart."""
    alt = altair()
    shapes = dict(zip(_ORDER, ("circle", "triangle-up", "cross", "square", "diamond", "triangle-down"), strict=True))
    return alt.Shape("outcome:N", scale=alt.Scale(domain=used, range=[shapes[each] for each in used]))
