"""What the page's program is given: charts without data, their tables, the colours, the table of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.report import look
from fairlap.report.chart import Chart
from fairlap.report.chart_tables import group_of
from fairlap.report.every_figure import every_figure
from fairlap.report.packed import packed
from fairlap.report.shown_run import ShownRun


def for_the_program(shown: ShownRun, charts: Sequence[Chart], tables: dict[str, list[dict[str, Any]]]) -> Any:
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
        },
        "groups": {work.label: group_of(work) for work in shown.works()},
        "order": {
            f"{heat.work.label}|{heat.conditions}": [contender.contestant for contender, _ in heat.rows]
            for heat in shown.heats
        },
        "charts": {
            chart.key: {
                "spec": chart.spec,
                "tables": chart.tables,
                "scope": chart.scope,
                "rowHeight": chart.row_height,
                "told": f"{chart.title}. {chart.told}",
            }
            for chart in charts
            if not chart.absent
        },
        "tables": {name: packed(records) for name, records in tables.items() if name in used},
        "figures": every_figure(shown),
    }


def _look(shown: ShownRun, of: look.Look) -> dict[str, Any]:
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
