"""What a lower precision costs: how much a score fell and the error grew against fp32.

And whether that is within the stated bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from fairlap import quantity_text
from fairlap.models.task_metrics import bounded_score_in
from fairlap.race.planning.plan import Plan
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

EXCEEDED = "E_MAX_DROP"


@dataclass(frozen=True)
class Drop:
    """Against the best contestant in fp32 on the same work, of all processes of the run.

    None where nothing was compared, or fp32 is not raced.
    """

    error: float | None = None  # how much larger the relative error is
    score: float | None = None  # how much lower its score is
    metric: str = ""  # of the score: the first that was asked for whose best value is 1, such as top1


def drop_of(plan: Plan, work: Work, processes: Sequence[ProcessResult], everything: Sequence[ProcessResult]) -> Drop:
    """Of these processes of one contestant."""
    exact = list(_in_fp32(plan, work, everything))
    own_error, own_score = _worst_error(processes), _score(processes)
    errors = [error for each in exact if (error := _worst_error(each)) is not None]
    error = max(0.0, own_error - min(errors)) if own_error is not None and errors else None
    scores = [score[1] for each in exact if (score := _score(each)) is not None]
    if own_score is None or not scores:
        return Drop(error)
    metric, value = own_score
    return Drop(error, max(0.0, max(scores) - value), metric)


def exceeded(plan: Plan, drop: Drop) -> str:
    """Explain why a contestant with this drop is not ranked; empty where it qualifies.

    Where answers were scored, the score counts, and else the error.
    """
    if plan.max_drop is None:
        return ""
    more = f"by more than the {quantity_text.share(plan.max_drop)} of --max-drop"
    if drop.score is not None:
        fell = quantity_text.share(drop.score)
        return f"its {drop.metric} fell by {fell} against fp32, {more}" if drop.score > plan.max_drop else ""
    if drop.error is None or drop.error <= plan.max_drop:
        return ""
    return f"its error grew by {quantity_text.relative_error(drop.error)} against fp32, {more}"


def _in_fp32(plan: Plan, work: Work, everything: Sequence[ProcessResult]) -> Iterator[list[ProcessResult]]:
    """Collect the finished processes of each contestant in fp32."""
    wanted = work.in_precision("fp32")
    for each in plan.works:
        for name in plan.contestants:
            if each.in_precision(name.precision) == wanted:
                whose = (each.id, name.text)
                yield [
                    process
                    for process in everything
                    if (process.work_id, process.contestant) == whose and process.finished
                ]


def _worst_error(processes: Sequence[ProcessResult]) -> float | None:
    """Of all answers that were checked; infinite where one was not finite."""
    errors = (error for process in processes for error in process.errors)
    return max((error.distance for error in errors if error.has_distance), default=None)


def _score(processes: Sequence[ProcessResult]) -> tuple[str, float] | None:
    """Take the median over processes, which differ in what they learnt."""
    found = [found for process in processes if (found := bounded_score_in(process.scores)) is not None]
    return (found[0][0], median(score.value for _, score in found)) if found else None
