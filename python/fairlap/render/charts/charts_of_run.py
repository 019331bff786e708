"""Which charts a run has, and which are left out because the data is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlap.render.charts import resources as other_charts
from fairlap.render.charts import scaling, sizes
from fairlap.render.charts import speed as speed_charts
from fairlap.render.charts.memory_by_batch import memory_by_batch
from fairlap.render.charts.parts.chart import Chart, JudgedAxis, Scope, left_out
from fairlap.render.charts.parts.chart_tables import group_of, pictures_of
from fairlap.render.charts.parts.look import CONTESTANT_COLOURS, CONTESTANTS, LABEL
from fairlap.render.charts.precision import time_against_error
from fairlap.render.charts.roofline import roofline
from fairlap.render.items_by_batch import time_per_item_ns
from fairlap.render.scenario_side import render_sides
from fairlap.results.results import Results
from fairlap.scenarios.added import Picture

_INTERVALS = "intervals"
_OF_CALLS = ("percentiles", "curves", "sample_curves", "samples", "trade")
_HEIGHT = 280
_COLOURS = {
    "scale": {"domain": [CONTESTANTS], "range": [CONTESTANT_COLOURS]},
    "legend": {"title": None, "orient": "top", "symbolOpacity": 1, "labelExpr": LABEL},
}

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def charts_of(shown: Results, tables: Tables) -> list[Chart]:
    sampled = bool(tables["samples"])
    judged = [each.basis.judged for each in shown.work_results]
    by = " or ".join(dict.fromkeys(each.by for each in judged))
    axis = JudgedAxis(by, next((each.unit for each in judged if each.unit in ("1/s", "B", "1")), "ns"))
    charts = [
        speed_charts.ranked_intervals(axis),
        *_if_several_precisions(shown, axis),
        *(chart for side in render_sides() for chart in side.charts(tables)),
        *(_added(each) for each in pictures_of(shown)),
        *_if_both_conditions(shown, axis),
        speed_charts.percentiles(),
        speed_charts.curves_of_processes(),
        speed_charts.curves_of_all_samples(sampled),
        speed_charts.over_time(sampled),
        *_sweep(shown, axis),
        *_if_several_sizes(tables, axis),
        *_if_scaled(shown, tables),
        *_if_under_roofs(shown, tables),
        other_charts.latency_against_throughput(),
        other_charts.cold_and_warm(),
        other_charts.memory(),
        *_if_batches_were_tried(shown),
        *_energy_and_cost(shown),
        other_charts.errors(bool(tables["tolerances"])),
    ]
    found = [chart if chart.absent or tables[chart.tables[0]] else _empty(chart) for chart in charts]
    of_calls_alone = all(each.of_rounds for each in judged)
    return found if of_calls_alone else [_apart_from(by, chart) for chart in found]


def _apart_from(judged_by: str, chart: Chart) -> Chart:
    """Say of a chart of calls that the contestants are ranked by something else."""
    if chart.absent or chart.key not in _OF_CALLS:
        return chart
    return replace(chart, note=f"{chart.note} Contestants are ranked by the {judged_by}, and not by their calls.")


def _added(picture: Picture) -> Chart:
    """Give it its data, and contestants the colours that they have in the other charts."""
    spec = {"height": _HEIGHT, **picture.spec(), "data": {"name": picture.table}}
    for part in (spec, *spec.get("layer", ())):
        colour = part.get("encoding", {}).get("color", {})
        if colour.get("field") == "contestant":
            part["encoding"] = {**part["encoding"], "color": {**_COLOURS, **colour}}
    scope: Scope = "works" if picture.over_works else "work"
    key = f"scenario-{picture.key}"
    return Chart(key, picture.title, picture.note, (picture.table,), spec, scope=scope, keyed=True)


def main_chart_of(charts: Sequence[Chart]) -> Chart:
    """Choose the chart of what contestants are ranked by: one of their scenario, else that of the intervals."""
    of_scenario = (chart for chart in charts if chart.is_main and not chart.absent)
    return next(of_scenario, next(chart for chart in charts if chart.key == _INTERVALS))


def main_charts_by_batch(charts: Sequence[Chart]) -> list[Chart]:
    """Choose the charts of one model at several batches: the time per item, else what it is ranked by, and memory."""
    found = {chart.key: chart for chart in charts if not chart.absent}
    figures = found.get("time_per_item_by_batch", found.get("judged_by_batch"))
    return [chart for chart in (figures, found.get("peak_by_batch")) if chart is not None]


def _empty(chart: Chart) -> Chart:
    return left_out(
        chart.key, chart.title, "No process reported this, so the chart is left out.", section=chart.section
    )


def _if_both_conditions(shown: Results, axis: JudgedAxis) -> list[Chart]:
    return (
        [other_charts.both_conditions(axis)]
        if len({work_result.conditions for work_result in shown.work_results}) > 1
        else []
    )


def _if_several_precisions(shown: Results, axis: JudgedAxis) -> list[Chart]:
    works = shown.works()
    precisions = list(dict.fromkeys(precision for work in works for precision in work.precisions))
    if len(precisions) < 2:
        return []
    return [time_against_error(axis, precisions, together=all(len(work.precisions) > 1 for work in works))]


def _if_batches_were_tried(shown: Results) -> list[Chart]:
    return [memory_by_batch()] if shown.run.plan.max_batch else []


def _if_scaled(shown: Results, tables: Tables) -> list[Chart]:
    if not shown.scaling:
        return []
    return [
        scaling.speed_up(tables),
        scaling.efficiency(tables),
        *([scaling.exchange_share()] if tables["exchanges"] else []),
    ]


def _if_under_roofs(shown: Results, tables: Tables) -> list[Chart]:
    """Draw the roofline, unless the run is older than the measurement of roofs."""
    return [roofline()] if shown.run.roofs is not None and tables["roofline"] else []


def _sweep(shown: Results, axis: JudgedAxis) -> list[Chart]:
    groups = [group_of(work) for work in shown.works()]
    if len(set(groups)) == len(groups):
        return []
    has_peaks = any(row.peak_memory_bytes for _, _, row in shown.every_row())
    has_items = any(time_per_item_ns(row) for _, _, row in shown.every_row())
    return [
        other_charts.judged_by_batch(axis),
        *([other_charts.time_per_item_by_batch()] if has_items else []),
        other_charts.batch_sweep(),
        *([other_charts.peak_by_batch()] if has_peaks else []),
    ]


def _if_several_sizes(tables: Tables, axis: JudgedAxis) -> list[Chart]:
    lines = {record["line"] for record in tables[sizes.TABLE]}
    return [sizes.time_by_parameters(axis, len(lines) > 1)] if lines else []


def _energy_and_cost(shown: Results) -> list[Chart]:
    """Only what was measured or priced."""
    rows = [row for _, _, row in shown.every_row()]
    found = []
    if any(row.energy_per_item_j for row in rows):
        found.append(other_charts.single_value("energy_j", "Energy", "Energy for one item.", "joules per item"))
    if any(row.mean_power_w for row in rows):
        found.append(other_charts.single_value("power_w", "Power", "Mean power while measured.", "watts"))
    if currency := next((row.currency for row in rows if row.currency), ""):
        found.append(
            other_charts.single_value(
                "cost",
                "Cost",
                "Cost of 1,000 items on a machine that runs nothing else.",
                f"{currency} for 1,000 items",
            )
        )
    return found
