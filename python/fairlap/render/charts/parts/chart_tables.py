"""The data of the charts, as small tables of records. Several charts may draw the same table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.models.modes import MODES
from fairlap.models.registry import find
from fairlap.render.charts import roofline, scaling, sizes
from fairlap.render.charts.parts.chart import axis_value
from fairlap.render.charts.parts.frontier import points_of
from fairlap.render.charts.parts.thinned_samples import curves_of_samples, samples_over_time
from fairlap.render.items_by_batch import time_per_item_ns
from fairlap.render.scenario_side import render_sides
from fairlap.request.work import Precision, Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.added import Picture
from fairlap.scenarios.contract import Unit, of_time_ns

Record = dict[str, Any]

PHASES = {
    "interpreter": ("interpreter",),
    "NumPy": ("numpy",),
    "import": ("import",),
    "build": ("build",),
    "compile": ("lower", "trace", "compile"),
    "bind": ("bind",),
    "first call": ("first_call",),
}
"""Phases from the start of a process to its first output, by the names in the chart."""

LAYERS = ("anonymous", "file", "shared")
"""Kinds of resident memory after the measurement; together they are all of it."""


def chart_tables(shown: Results) -> dict[str, list[Record]]:
    """By name. Charts give the reason why a table is empty."""
    makers: dict[str, Callable[[Results], Iterator[Record]]] = {
        "processes": _processes,
        "figures": _figures,
        "percentiles": _percentiles,
        "curves": _curves,
        "phases": _phases,
        "first": _first_answers,
        "memory": _memory,
        "batches": _batches,
        "errors": _errors,
        "precisions": _precisions,
        "scaling": scaling.points,
        "scaling_linear": scaling.linear,
        "scaling_projection": scaling.projected,
        "exchanges": scaling.exchanges,
        "roofline": roofline.points,
        sizes.TABLE: sizes.points,
        "roof_lines": roofline.lines,
        "tolerances": _tolerances,
        "sample_curves": curves_of_samples,
        "samples": samples_over_time,
    }
    for side in render_sides():
        makers |= side.tables
    found = {name: [_plainly(record) for record in make(shown)] for name, make in makers.items()}
    return found | {each.table: [*map(_plainly, _points(shown, each))] for each in pictures_of(shown)}


def pictures_of(shown: Results) -> list[Picture]:
    """Of the scenarios of its works, each once."""
    return list(dict.fromkeys(each for work in shown.works() for each in shown.run.plan.scenario(work).pictures))


def _points(shown: Results, picture: Picture) -> Iterator[Record]:
    for work_result, result, _ in shown.every_row():
        if picture in shown.run.plan.scenario(work_result.work).pictures:
            for process in result.finished:
                for point in picture.points(process):
                    yield {**point, **key_of(work_result, result.contestant), "work": work_result.work.label}


def group_of(work: Work) -> str:
    """Name what a sweep over batches holds fixed."""
    scale = "" if work.scale is None else f" · {work.scale.text}"
    return f"{work.model} · {work.mode} · {', '.join(work.precisions)}{scale}"


def _plainly(record: Record) -> Record:
    return {key: plain(value) for key, value in record.items()}


def key_of(work_result: WorkResult, contestant: str) -> Record:
    """Give what each record has of the work and the contestant that it is of."""
    return {"work_id": work_result.work.id, "conditions": work_result.conditions, "contestant": contestant}


def _processes(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        kept = set(work_result.blocks.kept)
        for process in result.finished:
            first = process.headline
            if (judged := result.judged_by.read(process)) is None:
                continue
            yield key_of(work_result, result.contestant) | {
                "block": process.block,
                "judged": axis_value(judged, row.judged_unit),
                "counts": "counts" if process.block in kept else "left out",
                "samples": first.samples,
                "course": first.course,
            }


def _on_axis(found: Estimate, unit: Unit) -> Estimate:
    low, high = (None if end is None else axis_value(end, unit) for end in (found.low, found.high))
    return Estimate(axis_value(found.value, unit), low, high)


def _figures(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        if row.judged is None:
            continue
        yield (
            key_of(work_result, result.contestant)
            | {"batch": work_result.work.batch, "group": group_of(work_result.work)}
            | _estimated("judged", _on_axis(row.judged, row.judged_unit), single=not row.modes)
            | _estimated("item_ns", time_per_item_ns(row))
            | _estimated("p99_ns", row.latency_p99_ns)
            | _estimated("throughput", row.throughput_per_s)
            | _estimated("peak_bytes", row.peak_memory_bytes)
            | _estimated("energy_j", row.energy_per_item_j)
            | _estimated("power_w", row.mean_power_w)
            | _estimated("cost", row.cost_per_1000_items)
        )


def _estimated(name: str, estimate: Estimate | None, *, single: bool = True) -> Record:
    """With several modes there is no single value to draw."""
    if estimate is None:
        return {}
    record: Record = {name: estimate.value if single else None}
    if estimate.low is not None and estimate.high is not None and single:
        record |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return record


def _percentiles(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        for name, field in (("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns")):
            estimate: Estimate | None = getattr(row, f"latency_{field}")
            if estimate is not None:
                yield key_of(work_result, result.contestant) | {
                    "percentile": name,
                    "ns": estimate.value,
                    "whole": True,
                }
            for process in result.finished:
                value = getattr(process.calls, field)
                yield key_of(work_result, result.contestant) | {
                    "percentile": name,
                    "ns": value,
                    "block": process.block,
                }


def _curves(shown: Results) -> Iterator[Record]:
    """Compute the share of processes that are at most this slow, starting at 0."""
    for work_result, result, _ in shown.every_row():
        ordered = sorted(process.headline_ns for process in result.finished)
        for place, value in enumerate(ordered):
            if place == 0:
                yield key_of(work_result, result.contestant) | {"ns": value, "share": 0.0}
            yield key_of(work_result, result.contestant) | {"ns": value, "share": (place + 1) / len(ordered)}


def _phases(shown: Results) -> Iterator[Record]:
    for work_result, result, _ in shown.every_row():
        processes = [process for process in result.finished if process.time_to_first_s() is not None]
        for order, (phase, parts) in enumerate(PHASES.items()):
            sums = [sum(process.phases_s.get(part, 0.0) for part in parts) for process in processes]
            if sums and max(sums) > 0:
                middle = _median(sums)
                yield key_of(work_result, result.contestant) | {
                    "phase": phase,
                    "order": order,
                    "seconds": middle,
                }


def _first_answers(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        first = row.time_to_first_gradient_s or row.time_to_first_inference_s
        if first is not None and (call := row.reported_ns or row.latency_p50_ns) is not None:
            steady = f"{len(row.modes)} modes" if row.modes else f"{quantity_text.duration(call.value)} a call"
            yield key_of(work_result, result.contestant) | {
                "label": f"{quantity_text.seconds(first.value)}, then {steady}"
            }


def _memory(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        for order, layer in enumerate(LAYERS):
            held = row.memory_bytes.get(layer, 0.0)
            if held > 0:
                yield key_of(work_result, result.contestant) | {"layer": layer, "order": order, "bytes": held}


def _batches(shown: Results) -> Iterator[Record]:
    """List the batches that fitted in the search for the largest one."""
    for work_result, result, row in shown.every_row():
        for batch, peak in row.memory_by_batch.items():
            yield key_of(work_result, result.contestant) | {
                "batch": int(batch),
                "peak_bytes": peak,
                "ns_per_item": row.time_per_item_by_batch_ns.get(batch),
            }


def _errors(shown: Results) -> Iterator[Record]:
    """Find the worst error of each checked array; a logarithmic scale cannot show an exact output."""
    for work_result, result, _ in shown.every_row():
        worst: dict[tuple[str, str], float] = {}
        for process in result.processes:
            for error in process.errors:
                key = (error.what, error.when)
                worst[key] = max(worst.get(key, 0.0), error.distance)
        for (what, when), relative in worst.items():
            if relative > 0:
                yield key_of(work_result, result.contestant) | {
                    "what": what,
                    "when": when,
                    "relative": relative,
                }


def _precisions(shown: Results) -> Iterator[Record]:
    """Those of all works on one model, mode and batch, under each of them."""
    for work_result in shown.work_results:
        unit = work_result.basis.judged.unit
        for point in points_of(shown, work_result):
            named = point.contestant if work_result.work.together else f"{point.contestant} ({point.precision})"
            yield key_of(work_result, point.contestant) | {
                "label": named,
                "precision": point.precision,
                "judged": axis_value(of_time_ns(point.time_ns, unit), unit),
                "error": point.error,
                "qualified": point.qualified,
                "frontier": point.on_frontier,
            }


def _tolerances(shown: Results) -> Iterator[Record]:
    """Unknown for a model that is not installed here; gradients are checked by directional derivatives instead."""
    for work_result in shown.work_results:
        if not MODES[work_result.work.mode].gives_outputs:
            continue
        relative = _tolerance(work_result.work.model, work_result.work.precision)
        if relative is not None and not work_result.work.together:
            yield {"work_id": work_result.work.id, "conditions": work_result.conditions, "relative": relative}


@cache
def _tolerance(model: str, precision: Precision) -> float | None:
    try:
        return find(model).spec.tolerance(precision).relative
    except (InvalidRequest, KeyError):
        return None


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


_FIGURES = 6


def plain(value: Any) -> Any:
    """For JSON: six figures are more than any chart shows, and what is not finite is absent."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_FIGURES}g}") if math.isfinite(value) else None
