"""Time against digits, as a picture: a mark for each contestant and work."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import spec_of
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.stability.table import StabilityTable

_WIDTH, _HEIGHT = 640, 320


def chart_of(result: StabilityTable, look: Look) -> str:
    alt = altair()
    points = [
        {
            **{"contestant": row.contestant, "work": row.model, "precision": row.precision},
            **{"digits": row.digits_kept, "us": row.time_ns / 1e3},
        }
        for row in result.rows
        if row.time_ns is not None and row.digits_kept is not None
    ]
    if not points:
        raise InvalidRequest("there is nothing to draw: no contestant has an answer", code="E_OUTPUT")
    names = list(dict.fromkeys(str(point["contestant"]) for point in points))
    colour = alt.Color("contestant:N", scale=alt.Scale(domain=names, range=look.colours(len(names))), title=None)
    precisions = list(dict.fromkeys(str(point["precision"]) for point in points))
    shape = alt.Shape("precision:N", scale=alt.Scale(domain=precisions), title=None)
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            x=alt.X("digits:Q", title="digits kept"),
            y=alt.Y("us:Q", scale=alt.Scale(type="log"), title="time of a call in µs"),
            color=colour,
            tooltip=["contestant:N", "work:N", "precision:N", "digits:Q", "us:Q"],
            **({"shape": shape} if len(precisions) > 1 else {}),
        )
        .properties(width=_WIDTH, height=_HEIGHT, title="Time against digits kept")
    )
    return drawn(spec_of(chart), look)
