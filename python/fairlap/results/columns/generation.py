"""Columns of a model that generates: how soon its first token comes, and how quickly those after it."""

from __future__ import annotations

from functools import partial

from fairlap.results.columns.latency import median_of
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN, TOKEN_GAP
from fairlap.scenarios.process_result import ProcessResult

_NS_PER_S = 1e9
_NO_TOKENS = "the model does not answer token by token"
OF_GENERATION = ("time_to_first_token_ns", "time_per_output_token_ns", "token_gap_p99_ns", "tokens_per_s")


def generation_of(result: ContestantResult) -> dict[str, Cell]:
    processes = result.finished
    why = absence_reason(result)
    if not why and not all(process.tokens_per_call for process in processes):
        why = _NO_TOKENS
    if why:
        return {name: Cell(None, why) for name in OF_GENERATION}
    unstamped = "its worker reports no times of tokens"
    return {
        "time_to_first_token_ns": cell_or(estimate(processes, partial(median_of, TIME_TO_FIRST_TOKEN)), unstamped),
        "time_per_output_token_ns": cell_or(estimate(processes, partial(median_of, TIME_PER_OUTPUT_TOKEN)), unstamped),
        "token_gap_p99_ns": cell_or(estimate(processes, _p99_of_gaps), unstamped),
        "tokens_per_s": cell_or(
            estimate(processes, lambda process: process.tokens_per_call / process.headline_ns * _NS_PER_S), unstamped
        ),
    }


def _p99_of_gaps(process: ProcessResult) -> float | None:
    timing = process.timings.get(TOKEN_GAP)
    return None if timing is None else timing.p99_ns
