"""Readings as one line: for logs, and as JSON for programs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from itertools import groupby

from fairlap.watch.readings import ReadingsNow
from fairlap.watch.rows import rows_of
from fairlap.watch.series import Series


def plain_line(readings: ReadingsNow) -> str:
    parts = []
    for group, rows in groupby(rows_of(readings.series), key=lambda row: row.group):
        parts.append(f"{group}: " + ", ".join(f"{row.name} {row.text}" for row in rows))
    return f"{time.strftime('%H:%M:%S')}  " + ("; ".join(parts) or "nothing could be read")


def absent_lines(readings: ReadingsNow) -> list[str]:
    return [f"absent: {absence.what}: {absence.why}" for absence in readings.absences()]


def json_line(readings: ReadingsNow) -> str:
    told = {
        "time_s": round(time.time(), 3),
        "interval_s": readings.interval_s,
        "sources": {name: {"present": not why, "absent_because": why} for name, why in readings.sources.items()},
        "readings": [_told(series) for series in readings.series],
        "absent": [asdict(absence) for absence in readings.absences()],
    }
    return json.dumps(told)


def _told(series: Series) -> dict[str, object]:
    """A number that is absent is null, and the reason stands beside it."""
    told: dict[str, object] = {"name": series.metric.name, "labels": series.labels}
    if series.metric.counter:
        told |= {"total": series.value, "per_second": series.per_second}
    else:
        told |= {"value": series.value}
    return told | ({"absent_because": series.absent} if series.absent else {})
