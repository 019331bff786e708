"""Columns of training to a score: how long it took, with how much energy, and whether it was reached at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median_low

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.meters.disturbances import OWN, WAITED
from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.columns.energy import energy_until, over_processes, unresolved
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate, times
from fairlap.results.prices import Price
from fairlap.results.row import Row
from fairlap.results.scenario_side import ResultsSide, all_absent
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.learning.results.column_definitions import LearningRow
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.process_result import Period, ProcessResult

_WORTH_NAMING = 0.02
_LEVEL = 0.05
_NOT_ASKED = "training to a score was not asked for"


class LearningColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        return learning_of(result, price)

    def costs(self, row: Row, price: Price) -> dict[str, Cell]:
        time = row.time_to_score_s
        cost = None if time is None else times(time, price.of_seconds(1))
        why = row.absent.get("time_to_score_s", "there is no time to a score")
        return {"cost_to_score": cell_or(cost, why)}

    def notices(self, result: ContestantResult) -> list[Notice]:
        found = steps_differ(result)
        return [] if found is None else [found]


def learning_of(result: ContestantResult, price: Price | None) -> dict[str, Cell]:
    curves = [process.learning for process in result.finished if process.learning is not None]
    why = absence_reason(result) or ("" if curves else _NOT_ASKED)
    if why:
        return all_absent(LearningRow, why)
    best = max(curve.best_score for curve in curves)
    reached = sum(curve.reached is not None for curve in curves)
    time = _time(result.finished, curves)
    too_few = f"{reached} of {len(curves)} processes reached the score; the best was {quantity_text.share(best, 4)}"
    return {
        "target_score": Cell(curves[0].target),
        "time_to_score_s": cell_or(time, too_few),
        "steps_to_score": cell_or(_steps(curves), too_few),
        "scored_every_epochs": Cell(float(max(curve.scored_every for curve in curves))),
        "step_in_epochs_ns": Cell(estimate(result.finished, _step_ns)),
        "evaluation_to_score_s": _evaluation(result.finished, curves),
        "energy_to_score_j": _energy(result, too_few),
        "reached_share": Cell(reached / len(curves)),
        "best_score": Cell(best),
        "cost_to_score": _cost(time, price, too_few),
    }


def steps_differ(result: ContestantResult) -> Notice | None:
    """Warn where a step of the epochs takes another time than one timed alone.

    Then the two are of other conditions. The interval is over the epochs of all processes; few of them are compared
    with the rounds.
    """
    learnt = [each for each in result.finished if each.learning is not None and each.learning.steps_are_calls]
    processes = [each for each in learnt if each.feeding is None]
    ratios = [ratio for process in processes for ratio in _over_timed_alone(process)]
    if not ratios:
        return None
    if len(ratios) < verdict.blocks_to_reach(_LEVEL):
        rounds = [turn_ns / process.headline_ns for process in processes for turn_ns in process.rounds_ns]
        found = verdict.shift(np.log(ratios), np.log(rounds), alpha=_LEVEL) if rounds else (0.0, -math.inf, math.inf)
        ratio = verdict.Bounded(*np.exp(found))
    else:
        ratio = verdict.difference(np.array(ratios), alpha=_LEVEL)
    longer = ratio.low > 1 + verdict.WORTH_A_WARNING
    if not longer and ratio.high >= 1 - verdict.WORTH_A_WARNING:
        return None
    value, low, high = map(quantity_text.number, (ratio.value, ratio.low, ratio.high))
    text = f"a step took {value} [{low}, {high}] times as long in the epochs as timed alone; "
    if longer:
        ran = [each for each in (_own(processes), _waited(processes, "after_turns")) if each]
        text += f"meanwhile {' and '.join(ran) or 'nothing else is known to have used a core'}"
    else:
        waited = _waited(processes, "turns")
        text += f"while it was timed alone, {waited or 'nothing else is known to have used a core'}"
    return Notice("W_STEPS_DIFFER", text)


def _own(processes: Sequence[ProcessResult]) -> str:
    share = _middle(processes, "after_turns", OWN)
    return f"fairlap's own process used {quantity_text.share(share)} of a core" if share > _WORTH_NAMING else ""


def _waited(processes: Sequence[ProcessResult], period: Period) -> str:
    share = _middle(processes, period, WAITED)
    waited = f"its threads waited for a core during {quantity_text.share(share)} of the time"
    return f"{waited}, which other programs or its own threads used" if share > _WORTH_NAMING else ""


def _middle(processes: Sequence[ProcessResult], period: Period, reading: str) -> float:
    return median_low([process.readings(period).get(reading, 0.0) for process in processes])


def _over_timed_alone(process: ProcessResult) -> list[float]:
    """How many times as long a step of each epoch took as the median step that was timed alone."""
    assert process.learning is not None
    ends = [Evaluation(0, 0.0, 0.0, 0.0), *process.learning.evaluations]
    return [
        1e9 * (after.stepping_s - before.stepping_s) / (after.steps - before.steps) / process.headline_ns
        for before, after in pairwise(ends)
    ]


def _step_ns(process: ProcessResult) -> float | None:
    """Compute the mean over all steps of the epochs."""
    if process.learning is None or not process.learning.evaluations:
        return None
    last = process.learning.evaluations[-1]
    return 1e9 * last.stepping_s / last.steps


def _cost(time: Estimate | None, price: Price | None, too_few: str) -> Cell:
    if price is None:
        return Cell(None, "no price was given")
    if time is None:
        return Cell(None, too_few)
    low, high = (None if end is None else price.of_seconds(end) for end in (time.low, time.high))
    return Cell(Estimate(price.of_seconds(time.value), low, high))


def _time(processes: Sequence[ProcessResult], curves: Sequence[LearningCurve]) -> Estimate | None:
    """Over processes; where some did not reach it, they count as slower than they were seen."""
    if all(curve.reached is not None for curve in curves):
        return estimate(processes, _seconds)
    times = [curve.trained_s if curve.reached is None else curve.reached.trained_s for curve in curves]
    median, low, high = verdict.median_time(times, [curve.reached is not None for curve in curves])
    return None if math.isinf(median) else Estimate.bounded(median, low, high)


def _evaluation(processes: Sequence[ProcessResult], curves: Sequence[LearningCurve]) -> Cell:
    if not any(each.answered_s for curve in curves for each in curve.evaluations):
        return Cell(None, "evaluation did not count")
    return cell_or(estimate(processes, _answered_s), "not all processes reached the score")


def _energy(result: ContestantResult, too_few: str) -> Cell:
    """As the time is: processes that did not reach the score count as needing more than they were seen to."""
    learnt = [(process, process.learning) for process in result.finished if process.learning is not None]
    reached = [curve.reached for _, curve in learnt]
    spans = [
        energy_until(process, len(curve.evaluations) if end is None else curve.evaluations.index(end) + 1)
        for (process, curve), end in zip(learnt, reached, strict=True)
    ]
    if None not in reached or unresolved(spans, "J"):
        return over_processes(result, spans, "J")
    seen = [end is not None for end in reached]
    middle, _, _ = verdict.median_time([span.value or 0.0 for span in spans], seen)
    if math.isinf(middle):
        return Cell(None, too_few)
    if any(span.low is None or span.high is None for span in spans):
        return Cell(Estimate(middle))
    _, low, _ = verdict.median_time([span.low or 0.0 for span in spans], seen)
    _, _, high = verdict.median_time([span.high or 0.0 for span in spans], seen)
    return Cell(Estimate.bounded(middle, min(low, middle), max(high, middle)))


def _steps(curves: Sequence[LearningCurve]) -> float | None:
    steps = [curve.reached.steps if curve.reached is not None else math.inf for curve in curves]
    middle = sorted(steps)[(len(steps) - 1) // 2]
    return None if math.isinf(middle) else float(middle)


def _seconds(process: ProcessResult) -> float | None:
    reached = None if process.learning is None else process.learning.reached
    return None if reached is None else reached.trained_s


def _answered_s(process: ProcessResult) -> float | None:
    reached = None if process.learning is None else process.learning.reached
    return None if reached is None else reached.answered_s
