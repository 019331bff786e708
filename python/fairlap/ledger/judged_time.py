"""The time of a row that the verdict is about."""

from __future__ import annotations

from fairlap.ledger.schema import Estimate, Row

_NS_PER_S = 1e9


def judged_time_ns(row: Row) -> Estimate | None:
    """Of the median call; where the race was fed, of a batch, with all that feeding takes."""
    rate = row.pipeline_throughput_per_s
    if rate is None:
        return row.latency_p50_ns

    def of(items_per_s: float | None) -> float | None:
        return None if items_per_s is None else row.batch / items_per_s * _NS_PER_S

    return Estimate(row.batch / rate.value * _NS_PER_S, of(rate.high), of(rate.low))


def judged_time_named(*, fed: bool) -> str:
    return "time of a fed batch" if fed else "median time of a call"
