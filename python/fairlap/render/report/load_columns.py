"""Columns of the ranked table that only a race of load has: what was found at the largest rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row


@dataclass(frozen=True)
class LoadColumn:
    head: str
    field: str  # of the row, for the reason of its absence
    is_rate: bool = False

    def text(self, row: Row) -> str:
        """Empty where it is absent."""
        value: Estimate | str | None = getattr(row, self.field)
        if value is None or isinstance(value, str):
            return value or ""
        if self.is_rate:
            return quantity_text.figure(value.value, "1/s", value.low, value.high)
        return quantity_text.duration(value.value)


LOAD_COLUMNS = (
    LoadColumn("p50 at this rate", "latency_at_largest_rate_p50_ns"),
    LoadColumn("p90 at this rate", "latency_at_largest_rate_p90_ns"),
    LoadColumn("p99 at this rate", "latency_at_largest_rate_p99_ns"),
    LoadColumn("first token p50", "first_token_at_largest_rate_p50_ns"),
    LoadColumn("first token p99", "first_token_at_largest_rate_p99_ns"),
    LoadColumn("per token p50", "output_token_at_largest_rate_p50_ns"),
    LoadColumn("per token p99", "output_token_at_largest_rate_p99_ns"),
    LoadColumn("tokens per second", "tokens_at_largest_rate_per_s", is_rate=True),
    LoadColumn("capacity", "capacity_per_s", is_rate=True),
    LoadColumn("limited by", "largest_rate_limited_by"),
)


def load_columns(rows: Sequence[Row]) -> list[LoadColumn]:
    """Those of which some row has a value."""
    return [column for column in LOAD_COLUMNS if any(column.text(row) for row in rows)]
