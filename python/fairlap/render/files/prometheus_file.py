"""Prometheus's text format, for the text file collector of the node exporter or a push gateway.

One gauge for each figure, with its interval as two more. What is absent has no sample. Neither reader takes times of
samples, so when a run began is a gauge too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row

PREFIX = "fairlap_race_"
_LABELS = (
    "workload", "mode", "precision", "batch", "device", "threads", "conditions", "data", "train_on", "load", "scale",
    "contestant", "framework", "version",
)  # fmt: skip


@dataclass(frozen=True)
class Gauge:
    name: str  # without its unit
    unit: str  # Prometheus's base unit, or empty
    help: str
    read: Callable[[Row], Estimate | float | None]
    scale: float = 1.0
    also: tuple[str, ...] = ()  # labels besides those of all gauges

    def full_name(self, end: str = "") -> str:
        return PREFIX + "_".join(part for part in (self.name, end, self.unit) if part)


_NS = 1e-9
GAUGES = (
    Gauge("finished", "", "1 if the contestant finished and may be ranked, else 0.", lambda row: _finished(row)),
    Gauge("began_timestamp", "seconds", "When the run began, since 1970.", lambda row: _began(row)),
    Gauge(
        "judged", "", "What it is ranked by, in its unit.", lambda row: row.judged, also=("judged_by", "judged_unit")
    ),
    Gauge("reported", "seconds", "Median time that the program reports of its work.", lambda row: row.reported_ns, _NS),
    Gauge("latency_p50", "seconds", "Median time of a call.", lambda row: row.latency_p50_ns, _NS),
    Gauge("latency_p99", "seconds", "99 of 100 calls are quicker.", lambda row: row.latency_p99_ns, _NS),
    Gauge("throughput_items_per_second", "", "Items in a second.", lambda row: row.throughput_per_s),
    Gauge("ratio", "", "Times as long as the baseline.", lambda row: row.ratio, also=("baseline",)),
    Gauge("peak_memory", "bytes", "Largest memory of its process.", lambda row: row.peak_memory_bytes),
    Gauge("energy_per_item", "joules", "Energy of one item.", lambda row: row.energy_per_item_j),
    Gauge("cost_per_1000_items", "", "Money for 1,000 items.", lambda row: row.cost_per_1000_items),
    Gauge("time_to_score", "seconds", "Time of training until the score.", lambda row: row.time_to_score_s),
    Gauge("largest_rate_per_second", "", "Largest rate within the bound.", lambda row: row.largest_rate_per_s),
    Gauge("error_relative_ratio", "", "Numerical error of the answer, relative.", lambda row: row.error_relative),
)


def encode(rows: Sequence[Row]) -> bytes:
    """Write the newest of rows with the same labels: no reader takes two samples of one series."""
    newest = {_labels(row): row for row in sorted(rows, key=lambda row: row.recorded_at)}
    lines: list[str] = []
    for gauge in GAUGES:
        for end in ("", "low", "high"):
            samples = list(_samples(gauge, end, newest))
            if samples:
                name, bound = gauge.full_name(end), f" The {end} end of its 95 % interval." if end else ""
                lines += [f"# HELP {name} {gauge.help}{bound}", f"# TYPE {name} gauge", *samples]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _samples(gauge: Gauge, end: str, rows: dict[str, Row]) -> Iterator[str]:
    for labels, row in rows.items():
        found = gauge.read(row)
        value = getattr(found, end or "value") if isinstance(found, Estimate) else None if end else found
        if value is not None:
            also = "".join(f',{name}="{_escaped(getattr(row, name) or "")}"' for name in gauge.also)
            yield f"{gauge.full_name(end)}{{{labels}{also}}} {value * gauge.scale:.17g}"


def _labels(row: Row) -> str:
    """Format the labels without empty ones, which Prometheus does not count as labels."""
    values = {name: str(getattr(row, name) or "") for name in _LABELS}
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items() if value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _finished(row: Row) -> float:
    return float(row.outcome == "finished")


def _began(row: Row) -> float | None:
    try:
        return datetime.fromisoformat(row.recorded_at).timestamp()
    except ValueError:
        return None
