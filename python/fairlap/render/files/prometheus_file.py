"""Prometheus's text format, for the text file collector of the node exporter or a push gateway.

One gauge for each figure, with its interval as two more. What is absent has no sample. Neither reader takes times of
samples, so when a run began is a gauge too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter

from fairlap.results.column_definitions.about import Gauge
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.flat_row import columns
from fairlap.results.row import Row

PREFIX = "fairlap_race_"
_Read = Callable[[Row], Estimate | float | None]
_LABELS = (
    "workload", "mode", "precision", "batch", "device", "threads", "conditions", "data", "train_on", "load", "scale",
    "contestant", "framework", "version",
)  # fmt: skip


_OF_ITS_RUN: tuple[tuple[Gauge, _Read], ...] = (
    (Gauge("finished", "", "1 if the contestant finished and may be ranked, else 0."), lambda row: _finished(row)),
    (Gauge("began_timestamp", "seconds", "When the run began, since 1970."), lambda row: _began(row)),
)
GAUGES: tuple[tuple[Gauge, _Read], ...] = (
    *_OF_ITS_RUN,
    *((each.about.gauge, attrgetter(each.field)) for each in columns() if each.about.gauge and each.field == each.name),
)


def full_name(gauge: Gauge, end: str = "") -> str:
    return PREFIX + "_".join(part for part in (gauge.name, end, gauge.unit) if part)


def encode(rows: Sequence[Row]) -> bytes:
    """Write the newest of rows with the same labels: no reader takes two samples of one series."""
    newest = {_labels(row): row for row in sorted(rows, key=lambda row: row.recorded_at)}
    lines: list[str] = []
    for gauge, read in GAUGES:
        for end in ("", "low", "high"):
            samples = list(_samples(gauge, read, end, newest))
            if samples:
                name, bound = full_name(gauge, end), f" The {end} end of its 95 % interval." if end else ""
                lines += [f"# HELP {name} {gauge.help}{bound}", f"# TYPE {name} gauge", *samples]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _samples(gauge: Gauge, read: _Read, end: str, rows: dict[str, Row]) -> Iterator[str]:
    for labels, row in rows.items():
        found = read(row)
        value = getattr(found, end or "value") if isinstance(found, Estimate) else None if end else found
        if value is not None:
            also = "".join(f',{name}="{_escaped(getattr(row, name) or "")}"' for name in gauge.also)
            yield f"{full_name(gauge, end)}{{{labels}{also}}} {value * gauge.scale:.17g}"


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
