"""A Grafana dashboard, as a file to import.

It shows the metrics of ``fairlap watch --serve`` and of races (``-o race.prom``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fairlap.watch.metrics import PREFIX
from fairlap.watch.prometheus import ABSENT, BUILD

_HALF_WIDTH, _WHOLE_WIDTH, _HEIGHT = 12, 24, 8
_DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_HERE = '{instance=~"$instance"}'
_RACES = '{instance=~"$races"}'  # as the node exporter names the machine, whose port is another
_RACE_KNOWN_BY = "race_finished"


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str  # by Grafana's name
    shown: dict[str, str]  # metric without prefix, legend
    selected: str = _HERE


PANELS = (
    Panel(
        "GPU power",
        "watt",
        {"gpu_power_watts": "GPU {{device}}", "gpu_power_average_watts": "GPU {{device}}, averaged by the driver"},
    ),
    Panel("Processor power", "watt", {"cpu_energy_joules_total": "{{device}}"}),
    Panel(
        "GPU clocks",
        "hertz",
        {"gpu_sm_clock_hertz": "GPU {{device}}", "gpu_memory_clock_hertz": "GPU {{device}}, memory"},
    ),
    Panel(
        "Processor clock",
        "hertz",
        {
            "cpu_clock_mean_hertz": "mean of the cores",
            "cpu_clock_lowest_hertz": "slowest core",
            "cpu_clock_highest_hertz": "fastest core",
        },
    ),
    Panel(
        "GPU memory",
        "bytes",
        {"gpu_memory_used_bytes": "GPU {{device}}", "gpu_memory_size_bytes": "GPU {{device}}, total"},
    ),
    Panel(
        "Memory",
        "bytes",
        {
            "memory_used_bytes": "machine",
            "memory_size_bytes": "machine, total",
            "control_group_memory_bytes": "control group",
        },
    ),
    Panel(
        "GPU throttled, share of time",
        "percentunit",
        {"gpu_throttled_seconds_total": "GPU {{device}}, {{reason}}"},
    ),
    Panel("GPU clock limited by", "bool_yes_no", {"gpu_clock_limited": "GPU {{device}}, {{reason}}"}),
    Panel(
        "GPU temperature",
        "celsius",
        {
            "gpu_temperature_celsius": "GPU {{device}}",
            "gpu_memory_temperature_celsius": "GPU {{device}}, memory",
        },
    ),
    Panel("GPU busy", "percentunit", {"gpu_busy_ratio": "GPU {{device}}"}),
    Panel(
        "Pressure, share of time",
        "percentunit",
        {
            "pressure_some_seconds_total": "{{resource}}, some tasks wait",
            "pressure_full_seconds_total": "{{resource}}, all tasks wait",
        },
    ),
    Panel(
        "Cores busy and stolen",
        "none",
        {"control_group_cpu_seconds_total": "busy, control group", "cpu_stolen_seconds_total": "stolen"},
    ),
    Panel(
        "Control group stopped by its quota, share of time",
        "percentunit",
        {"control_group_throttled_seconds_total": "throttled"},
    ),
    Panel("Thermal slowdowns per second", "none", {"cpu_thermal_slowdowns_total": "all cores"}),
)


_CONTESTANT = "{{workload}}, {{conditions}}: {{contestant}} {{version}}"
RACE_PANELS = (
    Panel("Races: median time of a call", "s", {"race_latency_p50_seconds": _CONTESTANT}, _RACES),
    Panel("Races: times as long as the baseline", "none", {"race_ratio": f"{_CONTESTANT} by {{{{baseline}}}}"}, _RACES),
    Panel("Races: items per second", "none", {"race_throughput_items_per_second": _CONTESTANT}, _RACES),
    Panel("Races: peak memory", "bytes", {"race_peak_memory_bytes": _CONTESTANT}, _RACES),
    Panel("Races: energy of an item", "joule", {"race_energy_per_item_joules": _CONTESTANT}, _RACES),
    Panel("Races: finished", "bool_yes_no", {_RACE_KNOWN_BY: _CONTESTANT}, _RACES),
)


def dashboard() -> dict[str, Any]:
    shown = (*PANELS, *RACE_PANELS)
    panels = [_time_series(panel, number) for number, panel in enumerate(shown)]
    panels.append(_absences_table(len(shown)))
    return {
        "uid": "fairlap-watch",
        "title": "fairlap",
        "description": "Power, clocks, memory, throttling, steal and pressure, as served by fairlap watch --serve; and"
        " results of races, as written by fairlap compare -o race.prom.",
        "tags": ["fairlap"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": panels,
    }


def dashboard_json() -> str:
    return json.dumps(dashboard(), indent=2)


def expression(metric: str, selected_by: str = _HERE) -> str:
    """Select a metric; a counter is shown by its rate."""
    selected = f"{PREFIX}{metric}{selected_by}"
    return f"rate({selected}[$__rate_interval])" if metric.endswith("_total") else selected


def _time_series(panel: Panel, number: int) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _DATA_SOURCE,
        "gridPos": {
            "x": number % 2 * _HALF_WIDTH,
            "y": number // 2 * _HEIGHT,
            "w": _HALF_WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"lineWidth": 1, "fillOpacity": 8, "spanNulls": False},
            },
            "overrides": [],
        },
        "options": {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _DATA_SOURCE,
                "expr": expression(metric, panel.selected),
                "legendFormat": legend,
            }
            for place, (metric, legend) in enumerate(panel.shown.items())
        ],
    }


def _absences_table(number: int) -> dict[str, Any]:
    rows_above = (number + 1) // 2
    return {
        "id": number + 1,
        "type": "table",
        "title": "Absent, with the reason",
        "datasource": _DATA_SOURCE,
        "gridPos": {"x": 0, "y": rows_above * _HEIGHT, "w": _WHOLE_WIDTH, "h": _HEIGHT},
        "targets": [
            {"refId": "A", "datasource": _DATA_SOURCE, "expr": ABSENT + _HERE, "format": "table", "instant": True}
        ],
        "transformations": [
            {
                "id": "organize",
                "options": {"excludeByName": {"Time": True, "Value": True, "__name__": True, "job": True}},
            }
        ],
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        _machines("instance", "Machine", BUILD),
        _machines("races", "Machine of races", PREFIX + _RACE_KNOWN_BY),
    ]


def _machines(name: str, label: str, metric: str) -> dict[str, Any]:
    """Offer a choice of the machines that have this metric."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATA_SOURCE,
        "query": f"label_values({metric}, instance)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
    }
