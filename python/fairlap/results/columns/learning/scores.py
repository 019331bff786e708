"""Columns of the metrics of a task: of the answers to a user's data, or of what each process learnt."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.models.task_metrics import Score, accuracy_in
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult

_FEWEST = 6  # an exact interval at 95 % takes as many


def scores_of(result: ContestantResult) -> dict[str, Score]:
    """Answers to the same data are the same in every process; what was learnt differs, so that is over processes."""
    learnt = [process for process in result.finished if process.learning is not None and process.scores]
    if learnt:
        return {name: _over_processes(name, learnt) for name in learnt[0].scores}
    return next((process.scores for process in result.processes if process.scores and process.learning is None), {})


def _over_processes(name: str, learnt: list[ProcessResult]) -> Score:
    found, items = estimate(learnt, lambda process: process.scores[name].value), learnt[0].scores[name].items
    assert found is not None
    count = quantity_text.count(len(learnt), "process")
    if found.low is None or found.high is None:
        few = f"an interval takes at least {_FEWEST} processes (got {len(learnt)})"
        why = few if len(learnt) < _FEWEST else "its processes fall into groups, or a figure is not above 0"
        return Score(found.value, None, None, "", items, why)
    return Score(found.value, found.low, found.high, f"over {count}", items)


def accuracy_of(result: ContestantResult) -> Cell:
    found = accuracy_in(scores_of(result))
    if found is not None:
        return Cell(Estimate(found.value, found.low, found.high))
    return Cell(None, absence_reason(result) or "the metric top1 was not asked for")
