"""Every ratio of a suite to its baseline with its interval, a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import measured_axis, ratio_scale, spec_of, with_ends
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.request.suite import E_SUITE
from fairlap.suite.suite_document import SuiteDocument

_WIDTH, _LINE_HEIGHT = 560, 26


def has_ratios(found: SuiteDocument) -> bool:
    return next(_points(found), None) is not None


def ratio_chart(found: SuiteDocument, look: Look) -> str:
    """Draw the point and the interval of each contestant but the baseline, and a line at 1."""
    points = list(_points(found))
    if not points:
        raise InvalidRequest("there is nothing to draw: no work of the suite has a ratio", code=E_SUITE)
    alt = altair()
    base = alt.Chart(alt.Data(values=points))
    y = alt.Y("line:N", sort=None, title=None, axis=alt.Axis(labelLimit=320))
    x = alt.X("ratio:Q", scale=ratio_scale(), axis=measured_axis("plain", "times as long as the baseline"))
    colour = alt.Color(
        "verdict:N",
        legend=alt.Legend(title=None, orient="top"),
        scale=alt.Scale(range=look.colours(len({each["verdict"] for each in points}))),
    )
    ends = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("ratio_low:Q"), x2="ratio_high:Q", y=y, color=colour
    )
    middles = base.mark_point(size=80, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    one = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(strokeDash=[4, 4]).encode(x="one:Q")
    chart = alt.layer(one, ends, middles).properties(width=_WIDTH, height=_LINE_HEIGHT * len(points))
    return drawn(spec_of(chart), look)


def _points(found: SuiteDocument) -> Iterator[dict[str, Any]]:
    several = {race.name for race in found.races if len(race.works) > 1}
    for race in found.races:
        for work in race.works:
            for each in work.contestants:
                if each.ratio is not None and each.contestant != each.baseline:
                    name = f"{race.name} · {work.title}" if race.name in several else race.name
                    yield {
                        "line": f"{name} · {each.contestant}",
                        "verdict": each.verdict or "",
                        **with_ends("ratio", each.ratio),
                    }
