"""Columns of the ranked tables that only a race of load has: what was found at the largest rate."""

from __future__ import annotations

from functools import partial

from fairlap import quantity_text
from fairlap.render.scenario_side import Summary
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row


def _text(field: str, row: Row, *, is_rate: bool = False) -> str:
    value: Estimate | str | None = getattr(row, field)
    if value is None or isinstance(value, str):
        return value or ""
    if is_rate:
        return quantity_text.figure(value.value, "1/s", value.low, value.high)
    return quantity_text.duration(value.value)


def _of(head: str, field: str, *, is_rate: bool = False) -> Summary:
    return Summary(head, field, partial(_text, field, is_rate=is_rate))


COLUMNS = (
    _of("p50 at this rate", "latency_at_largest_rate_p50_ns"),
    _of("p90 at this rate", "latency_at_largest_rate_p90_ns"),
    _of("p99 at this rate", "latency_at_largest_rate_p99_ns"),
    _of("first token p50", "first_token_at_largest_rate_p50_ns"),
    _of("first token p99", "first_token_at_largest_rate_p99_ns"),
    _of("per token p50", "output_token_at_largest_rate_p50_ns"),
    _of("per token p99", "output_token_at_largest_rate_p99_ns"),
    _of("tokens per second", "tokens_at_largest_rate_per_s", is_rate=True),
    _of("capacity", "capacity_per_s", is_rate=True),
    _of("limited by", "largest_rate_limited_by"),
)
