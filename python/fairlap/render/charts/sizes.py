"""The chart of several sizes of one family of models: what contestants are ranked by against the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.models.names import family_of
from fairlap.models.registry import find
from fairlap.render.charts.parts.chart import Chart, JudgedAxis, axis_value, coloured, named, spec_of, with_ends
from fairlap.render.charts.parts.libraries import altair
from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results

TABLE = "sizes"


def points(shown: Results) -> Iterator[dict[str, Any]]:
    """Of works that differ in the size alone; a family with one size has no line."""
    sizes: dict[str, set[str]] = {}
    for work in shown.works():
        sizes.setdefault(_line(work), set()).add(work.model)
    for work_result, result, row in shown.every_row():
        work = work_result.work
        line = _line(work)
        parameters = _parameters(work.model) if line and len(sizes[line]) > 1 else None
        if parameters is None or row.judged is None or row.modes:
            continue
        ends = (
            None if each is None else axis_value(each, row.judged_unit) for each in (row.judged.low, row.judged.high)
        )
        yield {
            "work_id": work.id,
            "conditions": work_result.conditions,
            "contestant": result.contestant,
            "line": line,
            "model": work.model,
            "parameters": parameters,
            **with_ends("judged", Estimate(axis_value(row.judged.value, row.judged_unit), *ends)),
        }


def _line(work: Work) -> str:
    """Name what works of a family share besides it; empty for a model on its own."""
    family = "" if work.source is not None else family_of(work.model)
    return f"{family} · {work.what_is_done}" if family else ""


@cache
def _parameters(model: str) -> int | None:
    """None for a model that this version does not have."""
    try:
        return find(model).spec.parameters
    except InvalidRequest:
        return None


@cache
def time_by_parameters(judged: JudgedAxis, several_lines: bool) -> Chart:
    alt = altair()
    label = "format(datum.value, '.3~s')"
    x = alt.X("parameters:Q", scale=alt.Scale(type="log", nice=False, padding=14), axis=alt.Axis(
        title="parameters", labelExpr=label, tickCount=5
    ))  # fmt: skip
    y = alt.Y("judged:Q", scale=alt.Scale(type="log", nice=False, padding=10), axis=judged.axis)
    base = alt.Chart(named(TABLE)).transform_calculate(shown=judged.shown)
    bands = base.mark_rule(strokeWidth=5, opacity=0.35).encode(
        x=x, y=alt.Y("judged_low:Q"), y2="judged_high:Q", color=coloured()
    )
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolSize=400, labelLimit=300)
    apart = {"strokeDash": alt.StrokeDash("line:N", legend=legend)}
    lines = base.mark_line(strokeWidth=2).encode(
        x=x, y=y, color=coloured(), **(apart if several_lines else {"detail": "line:N"})
    )
    # Separate from the lines: points on a line leave the legend of its dashes without strokes.
    marks = base.mark_circle(size=50, opacity=1).encode(
        x=x,
        y=y,
        color=coloured(),
        tooltip=["model:N", "contestant:N", "parameters:Q", alt.Tooltip("shown:N", title=judged.by)],
    )
    return Chart(
        "judged_by_parameters",
        f"{judged.by[:1].upper()}{judged.by[1:]} by parameters",
        "Sizes of one family, with 95 % intervals. Both axes are logarithmic.",
        (TABLE,),
        spec_of(alt.layer(bands, lines, marks).properties(height=280)),
        scope="works",
        keyed=True,
    )
