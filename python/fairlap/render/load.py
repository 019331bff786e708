"""What a race of load showed of one contestant, as text."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.render.generation import generation_under_load
from fairlap.request.load import Load
from fairlap.results.row import Row


def load_lines(row: Row) -> list[str]:
    """Describe the largest rate, where its latency begins to rise, and what LoadGen reports."""
    loadgen = [] if row.loadgen is None else [f"LoadGen: {row.loadgen}"]
    if row.largest_rate_per_s is not None and row.loadgen_rate_per_s is not None:
        loadgen = [f"{loadgen[0]} at {quantity_text.rate(row.loadgen_rate_per_s.value)}"]
    return [*filter(None, [at_largest_rate(row)]), *generation_under_load(row), *loadgen]


def threads_text(threads: int, load: Load | None) -> str:
    """Those of a call; each worker makes calls."""
    text = quantity_text.count(threads, "thread")
    return text if load is None or load.workers == 1 else f"{text} for each of {load.workers} workers"


def at_largest_rate(row: Row) -> str:
    """Empty where there is no such rate."""
    p50, p99 = row.latency_at_largest_rate_p50_ns, row.latency_at_largest_rate_p99_ns
    if p50 is None or p99 is None or row.largest_rate_per_s is None:
        return ""
    parts = [f"p50 {quantity_text.duration(p50.value)}, p99 {quantity_text.duration(p99.value)} at this rate"]
    if row.issue_lateness_p99_ns is not None:
        parts.append(f"issued {quantity_text.duration(row.issue_lateness_p99_ns.value)} late (p99)")
    if row.capacity_per_s is not None:
        parts.append(f"capacity {quantity_text.rate(row.capacity_per_s.value)}")
    if row.knee_rate_per_s is not None:
        parts.append(f"knee at {quantity_text.rate(row.knee_rate_per_s)}")
    if row.mean_batch_at_largest_rate is not None and row.mean_batch_at_largest_rate > 1:
        parts.append(f"{quantity_text.number(row.mean_batch_at_largest_rate, 2)} requests per call")
    if row.first_request_s is not None:
        parts.append(f"first request {quantity_text.seconds(row.first_request_s.value)}")
    return "; ".join(parts)
