"""The data island of the page: charts without data, their tables, the colours, and all columns of all rows.

Tables are written column by column, and a repeated text only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairlap.render.charts.parts import look
from fairlap.render.charts.parts.chart import Chart
from fairlap.render.charts.parts.chart_tables import group_of, plain
from fairlap.render.charts.parts.labels import NARROW, WIDE, label_expression
from fairlap.results.flat_row import columns, flat
from fairlap.results.results import Results

Packed = dict[str, Any]


def packed(records: Sequence[Mapping[str, Any]]) -> Packed:
    names = list(dict.fromkeys(name for record in records for name in record))
    return {"length": len(records), "columns": {name: _column([r.get(name) for r in records]) for name in names}}


def _column(values: list[Any]) -> list[Any] | Packed:
    """Numbers as they are. Texts as places in a list, unless nearly all of them differ."""
    if not any(isinstance(value, str) for value in values):
        return values
    distinct = list(dict.fromkeys(values))
    places = {value: place for place, value in enumerate(distinct)}
    return {"of": distinct, "at": [places[value] for value in values]}


_KEYS = frozenset({"run", "recorded_at", "work_id", "contestant", "conditions", "absent"})


def every_figure(shown: Results) -> dict[str, Any]:
    """Collect the columns with their meanings, and the rows, in whose cells ``absent`` is folded."""
    shown_columns = [column for column in columns() if column.name not in _KEYS]
    records = []
    for work_result, result, row in shown.every_row():
        own = flat(row)
        record = {
            "work_id": work_result.work.id,
            "conditions": work_result.conditions,
            "contestant": result.contestant,
        }
        for column in shown_columns:
            value = own[column.name]
            why = row.absent.get(column.field) if value is None and column.name == column.field else None
            if column.kind == "structure":
                value = _readable(msgspec.json.decode(value))
            record[column.name] = plain(value) if why is None else f"absent: {why}"
        records.append(record)
    described = [{"name": column.name, "group": column.group, "meaning": column.meaning} for column in shown_columns]
    return {"described": described, "rows": packed(records)}


def _readable(value: Any) -> str:
    """Put a structure into words: ``anonymous 54804480, file 40431616``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_readable(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "; ".join(_readable(each) for each in value)
    return f"{plain(value)}"


def for_the_program(shown: Results, charts: Sequence[Chart], tables: dict[str, list[dict[str, Any]]]) -> Any:
    used = {name for chart in charts for name in chart.tables}
    return {
        "contestants": shown.contestants,
        "looks": {name: _look(shown, of) for name, of in (("light", look.LIGHT), ("dark", look.DARK))},
        "words": {
            "contestants": look.CONTESTANTS,
            "colours": look.CONTESTANT_COLOURS,
            "phases": look.PHASE_COLOURS,
            "layers": look.LAYER_COLOURS,
            "ink": look.INK,
            "muted": look.MUTED,
            "paper": look.PAPER,
            "label": look.LABEL,
        },
        "labels": {
            name: label_expression(shown.contestants, most) for name, most in (("wide", WIDE), ("narrow", NARROW))
        },
        "groups": {work.id: group_of(work) for work in shown.works()},
        "order": {
            f"{work_result.work.id}|{work_result.conditions}": [
                result.contestant for result, _ in work_result.with_rows()
            ]
            for work_result in shown.work_results
        },
        "charts": {
            chart.key: {
                "spec": chart.spec,
                "tables": chart.tables,
                "scope": chart.scope,
                "rowHeight": chart.row_height,
                "note": f"{chart.title}. {chart.note}",
            }
            for chart in charts
            if not chart.absent
        },
        "tables": {name: packed(records) for name, records in tables.items() if name in used},
        "figures": every_figure(shown),
    }


def _look(shown: Results, of: look.Look) -> dict[str, Any]:
    colours = of.colours(len(shown.contestants))
    return {
        "config": of.config(),
        "ink": of.ink,
        "muted": of.muted,
        "paper": of.paper,
        "phases": of.phases,
        "layers": of.layers,
        "colours": dict(zip(shown.contestants, colours, strict=True)),
    }
