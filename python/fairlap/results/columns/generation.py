"""Columns of a model that generates: how soon its first token comes, and how quickly those after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairlap.results.columns.latency import median_of
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN, TOKEN_GAP
from fairlap.scenarios.process_result import ProcessResult

_NS_PER_S = 1e9
_NO_TOKENS = "the model does not answer token by token"
OF_GENERATION = (
    "time_to_first_token_ns",
    "time_per_output_token_ns",
    "token_gap_p99_ns",
    "tokens_per_s",
    "tokens_per_prompt_per_s",
)


def generation_of(result: ContestantResult, batch: int) -> dict[str, Cell]:
    processes = result.finished
    why = absence_reason(result)
    if not why and not all(process.tokens_per_call for process in processes):
        why = _NO_TOKENS
    if why:
        return {name: Cell(None, why) for name in OF_GENERATION}
    figures: tuple[Callable[[ProcessResult], float | None], ...] = (
        partial(median_of, TIME_TO_FIRST_TOKEN),
        partial(median_of, TIME_PER_OUTPUT_TOKEN),
        _p99_of_gaps,
        partial(_tokens_per_s, 1),
        partial(_tokens_per_s, batch),
    )
    unstamped = "its worker reports no times of tokens"
    return {
        name: cell_or(estimate(processes, figure), unstamped)
        for name, figure in zip(OF_GENERATION, figures, strict=True)
    }


def _p99_of_gaps(process: ProcessResult) -> float | None:
    timing = process.timings.get(TOKEN_GAP)
    return None if timing is None else timing.p99_ns


def _tokens_per_s(shared_by: int, process: ProcessResult) -> float:
    return process.tokens_per_call / shared_by / process.headline_ns * _NS_PER_S
