"""OpenMetrics text (``.metrics.txt``), which GitLab shows in a merge request as ``artifacts:reports:metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row, judged_time_ns

_SCALE = 1e-9
_METRICS: tuple[tuple[str, str, str, Callable[[Row], Estimate | None], float], ...] = (
    ("fairlap_judged_seconds", "seconds", "What it is ranked by, as a time.", judged_time_ns, _SCALE),
    ("fairlap_call_seconds", "seconds", "Median time of a call.", lambda row: row.latency_p50_ns, _SCALE),
    ("fairlap_reported_seconds", "seconds", "Time that the program reports.", lambda row: row.reported_ns, _SCALE),
    ("fairlap_ratio", "", "What it is ranked by, as a time, over that of the baseline.", lambda row: row.ratio, 1.0),
    ("fairlap_items_per_second", "", "Items in a second.", lambda row: row.throughput_per_s, 1.0),
    ("fairlap_peak_memory_bytes", "bytes", "The most that the process held.", lambda row: row.peak_memory_bytes, 1.0),
)


def encode(rows: Sequence[Row]) -> bytes:
    """Write a value with its interval for each row that has one; an absent value has no line, and is never 0."""
    lines: list[str] = []
    for name, unit, meaning, read, scale in _METRICS:
        samples = [line for row in rows for line in _samples(name, row, read(row), scale)]
        if samples:
            lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] * bool(unit)), f"# HELP {name} {meaning}"]
            lines += samples
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def _samples(name: str, row: Row, estimate: Estimate | None, scale: float) -> Iterator[str]:
    if estimate is None:
        return
    labels = {
        "work": f"{row.workload} {row.mode} {row.precision} batch {row.batch} {row.scale}".rstrip(),
        "conditions": row.conditions,
        "contestant": row.contestant,
    }
    values = {"median": estimate.value, "low": estimate.low, "high": estimate.high}
    for bound, value in values.items():
        if value is not None:
            listed = ",".join(f'{key}="{_escaped(each)}"' for key, each in {**labels, "bound": bound}.items())
            yield f"{name}{{{listed}}} {value * scale!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
