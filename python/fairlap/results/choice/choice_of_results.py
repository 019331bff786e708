"""The choice that the results of a race show, with what the metric made of each item."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from fairlap import verdict
from fairlap.models.metrics.metric import Parts
from fairlap.models.task_metrics import metric_named
from fairlap.request.work import Objective
from fairlap.results.choice.choice import (
    EXIT_STATUSES,
    Candidate,
    Choice,
    Front,
    ScoreDifference,
    TimeRatio,
)
from fairlap.results.choice.front import Compared, Outcome, Place, places
from fairlap.results.choice.item_scores import ComparedScores, compared_scores
from fairlap.results.choice.recommendation import recommended
from fairlap.results.choice.time_table import Names, TimeTable, time_table
from fairlap.results.decision.evidence import by_intervals, headline_results
from fairlap.results.decision.requirements import Qualification, Requirement, Status, qualification, why_out
from fairlap.results.decision.uses import ENERGY, MEMORY, Weight
from fairlap.results.estimates import times
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import WorkResult

_TIME_MARGIN = 0.02
_DROP = "score_drop"
_BY_INTERVALS: Mapping[Objective, Weight] = {"energy": ENERGY, "memory": MEMORY}
_OF_SCORE: Mapping[verdict.Verdict, Outcome] = {
    verdict.Verdict.FASTER: "better",
    verdict.Verdict.SLOWER: "worse",
    verdict.Verdict.EQUIVALENT: "equivalent",
    verdict.Verdict.INCONCLUSIVE: "inconclusive",
}
_REVERSED: Mapping[Outcome, Outcome] = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class ChoiceQuestion:
    """What is asked of a race of several models on the same labelled data."""

    metric: str
    requirements: tuple[Requirement, ...] = ()
    minimise: Objective | None = None
    score_margin: float = 0.01
    max_drop: float | None = None  # of the score, against that of the first candidate


def choice_of(
    results: Results,
    items: Mapping[tuple[str, str], Mapping[str, Parts]],
    question: ChoiceQuestion,
    file_bytes: Mapping[str, int] = MappingProxyType({}),
) -> Choice:
    """``items`` has by contestant and id of a work what each metric made of the items; ``file_bytes`` is by that id."""
    works = headline_results(results)
    names = _names(works)
    rows = {names[each.work.id, row.contestant]: (each, row) for each in works for row in each.rows}
    scored: dict[str, Parts] = {
        names[work, contestant]: by_metric[question.metric]
        for (contestant, work), by_metric in items.items()
        if not why_out(rows[names[work, contestant]][1])
    }
    scores = compared_scores(question.metric, scored, question.score_margin)
    timed = time_table(results, names)
    ratios = _ratios(timed)
    by_score, by_time = _compared(_score_outcomes(scores)), _compared(_time_outcomes(ratios))
    qualified = {name: qualification(row, question.requirements) for name, (_, row) in rows.items()}
    if question.max_drop is not None:
        first = next(iter(rows))
        drops = _drops(first, scores, higher=metric_named(question.metric).better == "higher")
        qualified = {
            name: each if name == first else _with_drop(each, drops.get(name), question.max_drop)
            for name, each in qualified.items()
        }
    comparable = [name for name in rows if name in scored]
    placed = places(comparable, (by_score, by_time))
    sizes = {name: file_bytes.get(work.work.id) or None for name, (work, _) in rows.items()}
    by_figure = _by_objective(question.minimise, by_time, rows, sizes)
    answer = recommended(
        {name: qualified[name].status if name in scored else "no" for name in rows},
        by_score,
        by_figure,
        question.minimise,
    )
    metric = metric_named(question.metric)
    return Choice(
        metric=question.metric,
        better=metric.better,
        items=max((len(parts[0]) for parts in scored.values()), default=0),
        items_disagreeing=scores.items_disagreeing,
        candidates=[
            _candidate(name, work, row, question.metric, qualified[name], placed.get(name), sizes[name])
            for name, (work, row) in rows.items()
        ],
        scores=_differences(scores),
        times=ratios,
        no_score_verdict=scores.why_not,
        no_time_verdict=timed.why_none,
        no_time_code=timed.code,
        requirements=(*(each.text for each in question.requirements), *_drop_required(question)),
        minimise=question.minimise,
        recommended=answer.names,
        reason=answer.reason,
        message=answer.message,
        exit_status=EXIT_STATUSES[answer.reason],
        blocks=timed.rounds,
        seconds=results.run.wall_s.get("whole", 0.0),
    )


def _drop_required(question: ChoiceQuestion) -> tuple[str, ...]:
    return () if question.max_drop is None else (f"{_DROP}<={question.max_drop:.4g}",)


def _drops(first: str, scores: ComparedScores, *, higher: bool) -> dict[str, tuple[float, float]]:
    """By candidate, the interval of how much worse it scores than the first one."""
    found = {}
    for each in scores.comparisons:
        if first in (each.a, each.b):
            low, high = each.interval.low, each.interval.high  # of the score of a less that of b
            is_drop = (each.a == first) == higher
            found[each.b if each.a == first else each.a] = (low, high) if is_drop else (-high, -low)
    return found


def _with_drop(before: Qualification, drop: tuple[float, float] | None, most: float) -> Qualification:
    """Require the drop too: its whole interval has to be within the bound."""
    if drop is None:
        status, why = "unknown", "its score was not compared with that of the first candidate"
    elif drop[1] <= most:
        return before
    else:
        status = "no" if drop[0] > most else "unknown"
        why = f"its score is {drop[0]:.4g} to {drop[1]:.4g} worse than that of the first candidate"
    worst: Status = "no" if "no" in (status, before.status) else "unknown"
    return Qualification(worst, {**before.reasons, f"{_DROP}<={most:.4g}": why})


def _names(works: Sequence[WorkResult]) -> Names:
    """Name candidates by model and contestant, with the sizes of the model where it races at several."""
    texts = [_text(each) for each in works]
    found: dict[tuple[str, str], str] = {}
    for each in works:
        text = _text(each)
        model = text if texts.count(text) == 1 else each.work.model
        found |= {(each.work.id, row.contestant): f"{model} in {row.contestant}" for row in each.rows}
    return found


def _text(found: WorkResult) -> str:
    return found.work.model if found.work.source is None else found.work.source.text


def _candidate(
    name: str,
    work: WorkResult,
    row: Row,
    metric: str,
    qualified: Qualification,
    place: Place | None,
    file_bytes: int | None,
) -> Candidate:
    latency = row.latency_p50_ns
    figures = {
        "score": (row.scores.get(metric), row.message or "it was not scored"),
        "time_per_item_ns": (latency and times(latency, 1 / row.batch), row.absent.get("latency_p50_ns", "")),
        **{
            column: (getattr(row, column), row.absent.get(column, ""))
            for column in ("peak_memory_bytes", "energy_per_item_j", "cost_per_1000_items", "currency")
        },
        "file_bytes": (file_bytes, "the files of a function are not known"),
    }
    front: Front = "not compared" if place is None else place.position
    return Candidate(
        name=name,
        model=_text(work),
        contestant=row.contestant,
        batch=row.batch,
        outcome=row.outcome,
        message=row.message,
        code=next((each.code for each in work.contestants if each.contestant == row.contestant), ""),
        **{column: value for column, (value, _) in figures.items()},
        absent={column: why for column, (value, why) in figures.items() if value is None},
        qualifies=qualified.status,
        reasons=qualified.reasons,
        front=front,
        dominated_by=[] if place is None else list(place.dominated_by),
        may_be_dominated_by=[] if place is None else list(place.may_be_dominated_by),
    )


def _ratios(timed: TimeTable) -> list[TimeRatio]:
    if timed.table is None:
        return []
    return [
        TimeRatio(
            a=each.a,
            b=each.b,
            ratio=each.ratio,
            low=each.interval.low or None,
            high=each.interval.high if math.isfinite(each.interval.high) else None,
            level=each.interval.level,
            p_adjusted=each.p_adjusted,
            outcome=each.verdict.value,
            margin=each.margin,
            detectable=each.detectable_effect if math.isfinite(each.detectable_effect) else None,
            rounds=each.blocks,
        )
        for each in verdict.judge([timed.table], margin=_TIME_MARGIN)
    ]


def _differences(scores: ComparedScores) -> list[ScoreDifference]:
    found = []
    for each in scores.comparisons:
        disagreement = scores.disagreements[each.a, each.b]
        found.append(
            ScoreDifference(
                a=each.a,
                b=each.b,
                difference=each.difference,
                low=each.interval.low,
                high=each.interval.high,
                level=each.interval.level,
                p_adjusted=each.p_adjusted,
                outcome=_OF_SCORE[each.verdict],
                margin=each.margin,
                equivalence_low=each.equivalence_interval.low,
                equivalence_high=each.equivalence_interval.high,
                detectable=each.detectable_effect,
                method=each.method,
                items_differing=disagreement.items,
                only_a_right=disagreement.only_a,
                only_b_right=disagreement.only_b,
            )
        )
    return found


_Outcomes = dict[tuple[str, str], Outcome]


def _score_outcomes(scores: ComparedScores) -> _Outcomes:
    return {(each.a, each.b): _OF_SCORE[each.verdict] for each in scores.comparisons}


def _time_outcomes(ratios: Sequence[TimeRatio]) -> _Outcomes:
    return {(each.a, each.b): _OF_SCORE[verdict.Verdict(each.outcome)] for each in ratios}


def _compared(outcomes: _Outcomes) -> Compared:
    """Look up both directions; a pair that was not compared is inconclusive."""

    def outcome(a: str, b: str) -> Outcome:
        if (a, b) in outcomes:
            return outcomes[a, b]
        other = outcomes.get((b, a), "inconclusive")
        return _REVERSED.get(other, other)

    return outcome


def _by_objective(
    minimise: Objective | None,
    by_time: Compared,
    rows: Mapping[str, tuple[WorkResult, Row]],
    sizes: Mapping[str, int | None],
) -> Compared:
    """Compare times, and costs at one price, by the verdict; sizes as they are; the others by intervals apart."""
    if minimise == "size":
        return partial(_by_size, sizes)
    weight = None if minimise is None else _BY_INTERVALS.get(minimise)
    return by_time if weight is None else partial(_by_intervals, weight, rows)


def _by_size(sizes: Mapping[str, int | None], a: str, b: str) -> Outcome:
    one, other = sizes[a], sizes[b]
    if one is None or other is None:
        return "inconclusive"
    return "equivalent" if one == other else "better" if one < other else "worse"


def _by_intervals(weight: Weight, rows: Mapping[str, tuple[WorkResult, Row]], a: str, b: str) -> Outcome:
    found = by_intervals(rows[a][1], rows[b][1], weight)
    if found.ratio is None or not found.is_shown:
        return "inconclusive"
    return "better" if found.ratio < 1 else "worse"
