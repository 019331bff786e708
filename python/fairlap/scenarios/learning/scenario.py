"""The scenario of training to a score: contestants are ranked by the time of training until they reach it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from fairlap import quantity_text, verdict
from fairlap.request.work import Work
from fairlap.scenarios.added import Cells, JudgedBefore, Quantity
from fairlap.scenarios.calls.calls_scenario import judged_calls
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unqualified
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult

NOT_REACHED = "E_SCORE_NOT_REACHED"
STEP_TIME = verdict.Metric("time of a step", "ns")
STEPS_TO_SCORE = verdict.Metric("steps to score", "steps", is_speed=False)
_FEWEST_COMPARED = 2


def _seconds(process: ProcessResult) -> float | None:
    return process.time_to_score_s


def _ns(process: ProcessResult) -> float | None:
    seconds = process.time_to_score_s
    return None if seconds is None else 1e9 * seconds


def _steps(process: ProcessResult) -> float | None:
    reached = None if process.learning is None else process.learning.reached
    return None if reached is None else float(reached.steps)


def _step_ns(process: ProcessResult) -> float | None:
    return process.headline_ns


def _learns(process: ProcessResult) -> bool:
    return process.learning is not None


def _learns_by_calls(process: ProcessResult) -> bool:
    return process.learning is not None and process.learning.steps_are_calls


def _named_before(cells: Cells, evaluation_counts: bool) -> str:
    return time_to_score_named(cells["target_score"] or 0.0, evaluation_counts=evaluation_counts)


def _always_reached(cells: Cells) -> bool:
    return cells["reached_share"] in (None, 1.0)


class TrainingToAScore(Scenario):
    judges_rounds = False
    after_turns = "fairlap.scenarios.learning.race.training_run:TrainingRun"
    race_side = "fairlap.scenarios.learning.race.from_request:LearningFromRequest"
    columns = "fairlap.scenarios.learning.results.column_definitions:LearningRow"
    results_side = "fairlap.scenarios.learning.results.columns:LearningColumns"
    render_side = "fairlap.scenarios.learning.render.shown:LearningShown"
    # How long training takes depends more on the weights that it begins with.
    data_seeds: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4)

    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(STEP_TIME, _step_ns, _learns_by_calls, headline=verdict.LATENCY, of_rounds=True),
        Quantity(verdict.TIME_TO_SCORE, _ns, _learns, period="after_turns"),
        Quantity(STEPS_TO_SCORE, _steps, _learns),
    )

    judged_before: ClassVar[tuple[JudgedBefore, ...]] = (
        JudgedBefore("time_to_score_s", "s", _named_before, ("target_score", "reached_share"), _always_reached),
    )

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return asked.to_score is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        """By the time to the score, or by that of a step where fewer than two contestants always reached it."""
        assert asked.to_score is not None
        short = _missed(processes, asked.to_score)
        reached = sum(name not in short for name in ranked)
        if not reached or reached < min(_FEWEST_COMPARED, len(ranked)):
            score = quantity_text.share(asked.to_score, 3)
            remark = f"times of a step, since fewer than two always reached a score of {score}"
            judged = judged_calls([each for own in processes.values() for each in own])
            return Ruling(judged, remark=remark if len(processes) > 1 else "")
        by = time_to_score_named(asked.to_score, evaluation_counts=asked.count_evaluation)
        return Ruling(Judged(by, verdict.TIME_TO_SCORE, _seconds, "s", period="after_turns"), short, remark=by)

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        return any(process.time_to_score_s is not None for process in finished)

    def reaches(self, work: Work) -> Iterable[str]:
        data = work.train_on
        return [f"training data {Path(data.path).absolute()}"] if data is not None and data.path else []


def time_to_score_named(target: float, *, evaluation_counts: bool) -> str:
    """Name the quantity; times to other scores, or with evaluation in them, are other quantities."""
    return f"time to a score of {quantity_text.share(target, 6)}{', evaluation counted' if evaluation_counts else ''}"


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
