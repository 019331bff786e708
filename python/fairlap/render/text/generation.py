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


def _interval(estimate: Estimate) -> str:
    return quantity_text.duration_interval(estimate.value, estimate.low, estimate.high)
