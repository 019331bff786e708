"""The columns of a row about its answers: what they agree with, how far off they are, and what fewer bits cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.models.task_metrics import Score, accuracy_in, bounded_score_in
from fairlap.race.equal_work.training_answers import FIRST_EPOCH
from fairlap.race.planning.plan import Plan
from fairlap.request.work import Work
from fairlap.request.work_title import NOT_COMPARED, compared_with
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult

# Columns of the metrics of a task: of the answers to a user's data, or of what each process learnt.
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


_UNCHECKED = "no answer was checked"
_TOKENS_ALONE = "it hands out no logits: its answers were compared by their tokens"


def errors_of(plan: Plan, result: ContestantResult) -> dict[str, Cell]:
    checked = [error for process in result.processes for error in process.errors if error.when != FIRST_EPOCH]
    errors = [error for error in checked if error.has_distance]
    why = "" if errors else absence_reason(result) or (_TOKENS_ALONE if checked else _UNCHECKED)
    # A gradient is checked along directions; it has a distance, and no elements that could be off.
    by_element = [each for each in errors if each.worst_absolute is not None or each.relative is None]
    return {
        "error_relative": _worst([each.relative for each in errors], why),
        "error_absolute": _worst([each.worst_absolute for each in by_element], why),
        "error_drop": _drop(plan, result.drop.error, _why_unchecked(result)),
        "accuracy_drop": _drop(plan, result.drop.score, _why_unscored(result)),
        "zero_weights": cell_or(
            next((each.zero_weights for each in result.processes if each.zero_weights is not None), None),
            absence_reason(result) or "the model has no weights",
        ),
        "accuracy": accuracy_of(result),
    }


def agreement_of(plan: Plan, work: Work, result: ContestantResult) -> str:
    """Of a contestant that gave a wrong answer, or none, what became of it is in its outcome."""
    if work.is_model:
        checked = any(process.errors for process in result.finished)
        return "agree with the reference" if checked else ""
    what = compared_with(work, plan.contestants)
    if not what:
        return NOT_COMPARED
    return f"agree with {what}" if result.finished and result.worst_outcome == "finished" else f"compared with {what}"


def _why_unscored(result: ContestantResult) -> str:
    """Empty where it has a score."""
    if bounded_score_in(scores_of(result)) is not None:
        return ""
    return absence_reason(result) or "no metric such as top1 was asked for"


def _drop(plan: Plan, drop: float | None, why_nothing: str) -> Cell:
    """``why_nothing`` is why the contestant's own figure is absent, if it is."""
    if drop is not None:
        return Cell(drop) if math.isfinite(drop) else Cell(None, "an answer was not finite")
    if why_nothing:
        return Cell(None, why_nothing)
    if not any("fp32" in each.precisions for each in plan.works):
        return Cell(None, "fp32 was not raced")
    return Cell(None, "no contestant finished in fp32")


def _why_unchecked(result: ContestantResult) -> str:
    checked = [error for process in result.processes for error in process.errors]
    if any(error.has_distance for error in checked):
        return ""
    return absence_reason(result) or (_TOKENS_ALONE if checked else _UNCHECKED)


def _worst(distances: Sequence[float | None], why: str) -> Cell:
    known = [distance for distance in distances if distance is not None]
    if not distances:
        return Cell(None, why or "no single elements were checked")
    return Cell(max(known)) if len(known) == len(distances) else Cell(None, "an answer was not finite")
