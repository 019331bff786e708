"""What runs ranked by against its cost, side by side, with what no other line beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.history.across.lines import Line
from fairlap.render.charts.parts.chart import JudgedAxis, axis_value, measured_axis, ratio_scale, spec_of, with_ends
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look

_COSTS = {"ns": "cost of 1,000 items", "s": "cost of reaching it", "1/s": "cost of 1,000 at this rate"}
_WIDTH, _HEIGHT = 620, 320


def pareto_chart(lines: Sequence[Line], look: Look) -> str:
    """One panel for each work, figure and currency: costs in two currencies have no common axis."""
    groups: dict[tuple[tuple[str, str], str, str | None], list[Line]] = {}
    for line in lines:
        if line.judged_cost:
            groups.setdefault((line.done, line.judged_by, line.currency), []).append(line)
    panels = [_panel(f"{own[0].work}, {currency}", own, look) for (_, _, currency), own in groups.items()]
    if not panels:
        raise InvalidRequest(
            "there is nothing to draw: no contestant has both a time and a cost; give the price with --price",
            code="E_ACROSS",
        )
    alt = altair()
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=40).resolve_scale(color="independent")
    return drawn(spec_of(chart), look)


def _panel(title: str, lines: Sequence[Line], look: Look) -> Any:
    alt = altair()
    points = [_point(line) for line in lines]
    x = alt.X("judged:Q", scale=ratio_scale(), axis=JudgedAxis(lines[0].judged_by, lines[0].judged_unit).axis)
    y_axis = measured_axis("plain", f"{_COSTS.get(lines[0].judged_unit, 'cost')}, {lines[0].currency}")
    y = alt.Y("cost:Q", scale=ratio_scale(), axis=y_axis)
    runs = list(dict.fromkeys(line.run for line in lines))
    scale = alt.Scale(domain=runs, range=look.colours(len(runs)))
    colour = alt.Color("run:N", scale=scale, legend=alt.Legend(title=None, orient="top"))
    base = alt.Chart(alt.Data(values=points))
    across = base.mark_rule(strokeWidth=2, opacity=0.4).encode(
        x=alt.X("judged_low:Q"), x2="judged_high:Q", y=y, color=colour
    )
    upright = base.mark_rule(strokeWidth=2, opacity=0.4).encode(
        x=x, y=alt.Y("cost_low:Q"), y2="cost_high:Q", color=colour
    )
    best = base.transform_filter("!datum.dominated").mark_point(size=130, filled=True, opacity=1)
    beaten = base.transform_filter("datum.dominated").mark_point(size=90, filled=False, opacity=1, strokeWidth=2)
    words = base.mark_text(align="left", dx=11, dy=-9, fontSize=11, color=look.ink).encode(
        x=x, y=y, text="contestant:N"
    )
    marks = [each.encode(x=x, y=y, color=colour) for each in (best, beaten)]
    better = "right" if lines[0].judged_better == "higher" else "left"
    about = [
        f"Down and to the {better} is better. Lines are 95 % intervals.",
        "Hollow: another one is better in both.",
    ]
    return alt.layer(across, upright, *marks, words).properties(
        width=_WIDTH,
        height=_HEIGHT,
        title={"text": title, "subtitle": about, "anchor": "start", "offset": 14},
    )


def _point(line: Line) -> dict[str, Any]:
    judged, cost = line.judged, line.judged_cost
    assert judged is not None
    assert cost is not None
    judged_values = with_ends("judged", judged)
    return {
        "contestant": line.contestant,
        "run": line.run,
        **{name: axis_value(value, line.judged_unit) for name, value in judged_values.items()},
        **with_ends("cost", cost),
        "dominated": bool(line.dominated_by),
    }
