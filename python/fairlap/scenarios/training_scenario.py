"""The scenario of training to a score: contestants are ranked by the time of training until they reach it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairlap import quantity_text, verdict
from fairlap.request.work import Work
from fairlap.scenarios.calls_scenario import judged_calls
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unqualified
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.training_messages import LearningCurve

NOT_REACHED = "E_SCORE_NOT_REACHED"
_FEWEST_COMPARED = 2


class TrainingToAScore(Scenario):
    judges_rounds = False
    after_turns = "fairlap.race.equal_work.training_run:TrainingRun"

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return asked.to_score is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        """By the time to the score, or by that of a step where fewer than two contestants always reached it."""
        assert asked.to_score is not None
        short = _missed(processes, asked.to_score)
        reached = sum(name not in short for name in ranked)
        if not reached or reached < min(_FEWEST_COMPARED, len(ranked)):
            score = quantity_text.share(asked.to_score)
            remark = f"times of a step, since fewer than two always reached a score of {score}"
            judged = judged_calls([each for own in processes.values() for each in own])
            return Ruling(judged, remark=remark if len(processes) > 1 else "")
        by = time_to_score_named(asked.to_score, evaluation_counts=asked.count_evaluation)
        return Ruling(Judged(by, verdict.TIME_TO_SCORE, _seconds, "s"), short, remark=by)

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        return any(process.time_to_score_s is not None for process in finished)


def time_to_score_named(target: float, *, evaluation_counts: bool) -> str:
    """Name the quantity; times to other scores, or with evaluation in them, are other quantities."""
    return f"time to a score of {quantity_text.share(target, 6)}{', evaluation counted' if evaluation_counts else ''}"


def _seconds(process: ProcessResult) -> float | None:
    return process.time_to_score_s


def _missed(processes: Processes, target: float) -> dict[str, Unqualified]:
    """Contestants of which a process did not reach the score. Leaving out such blocks would favour them."""
    return {name: why for name, own in processes.items() if (why := _why_short(own, target)) is not None}


def _why_short(processes: Sequence[ProcessResult], target: float) -> Unqualified | None:
    curves = [process.learning or LearningCurve(target) for process in processes if process.finished]
    short = sum(curve.reached is None for curve in curves)
    if not short:
        return None
    best = quantity_text.share(max(curve.best_score for curve in curves), 4)
    of_all = f"in {short} of {quantity_text.count(len(curves), 'process')}"
    return Unqualified(f"did not reach the score {of_all}; the best was {best}", NOT_REACHED)
