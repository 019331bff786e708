"""How soon and how quickly the tokens of an answer came, as text."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.meters.memory import CACHE
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row


def generation_lines(row: Row) -> list[str]:
    first, each, rate = row.time_to_first_token_ns, row.time_per_output_token_ns, row.tokens_per_s
    if first is None or rate is None:
        return []
    parts = [f"first token after {_interval(first)}"]
    if each is not None:
        parts.append(f"then {_interval(each)} per token")
    if row.token_gap_p99_ns is not None:
        parts[-1] += f" (p99 {quantity_text.duration(row.token_gap_p99_ns.value)})"
    parts.append(f"{quantity_text.number(rate.value)} tokens/s")
    if row.batch > 1 and row.tokens_per_prompt_per_s is not None:
        parts[-1] += f" ({quantity_text.number(row.tokens_per_prompt_per_s.value)} for each of {row.batch} prompts)"
    if CACHE in row.memory_bytes:
        parts.append(f"keys and values {quantity_text.size(row.memory_bytes[CACHE])}")
    return [", ".join(parts)]


def generation_under_load(row: Row) -> list[str]:
    """At the largest rate, the first token from when its request was due."""
    first50, first99 = row.first_token_at_largest_rate_p50_ns, row.first_token_at_largest_rate_p99_ns
    each50, each99 = row.output_token_at_largest_rate_p50_ns, row.output_token_at_largest_rate_p99_ns
    rate = row.tokens_at_largest_rate_per_s
    if first50 is None or first99 is None or each50 is None or each99 is None or rate is None:
        return []
    return [
        f"first token p50 {quantity_text.duration(first50.value)}, p99 {quantity_text.duration(first99.value)}; "
        f"per token p50 {quantity_text.duration(each50.value)}, p99 {quantity_text.duration(each99.value)}; "
        f"{quantity_text.number(rate.value)} tokens/s"
    ]


def _interval(estimate: Estimate) -> str:
    return quantity_text.duration_interval(estimate.value, estimate.low, estimate.high)
