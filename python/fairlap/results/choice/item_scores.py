"""What the metric made of each item, as pairs of candidates that the verdict on scores compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from fairlap.models.metrics.metric import Array, Parts, TaskMetric, items_differing
from fairlap.models.task_metrics import metric_named
from fairlap.verdict.scores.judge_scores import PairOfScores, ScoreComparison, judge_scores
from fairlap.verdict.scores.resampled import FEWEST_ITEMS, resampled_pairs
from fairlap.verdict.scores.right_or_wrong import RightOrWrong

Items = Mapping[str, Parts]
"""By candidate."""


@dataclass(frozen=True)
class Disagreement:
    """Of two candidates: items about which the metric's numbers differ, and which one alone is right."""

    items: int
    only_a: int | None = None  # None where an item is not right or wrong as a whole
    only_b: int | None = None


@dataclass(frozen=True)
class ComparedScores:
    comparisons: tuple[ScoreComparison, ...]
    disagreements: Mapping[tuple[str, str], Disagreement]
    items_disagreeing: int  # about which not all candidates have the same
    why_not: str = ""  # why some pairs were not compared


def compared_scores(metric_text: str, items: Items, margin: float) -> ComparedScores:
    """Compare all pairs; the margin is absolute for metrics whose best is 1, else a share of the larger score."""
    metric = metric_named(metric_text)
    if len(items) < 2:
        return ComparedScores((), {}, 0, "a comparison takes the scores of two candidates")
    right = _right(metric, items)
    disagreements = {pair: _disagreement(items, right, *pair) for pair in combinations(items, 2)}
    first, *others = items.values()
    differing = np.logical_or.reduce([items_differing(first, each) for each in others])
    found, why = _pairs(metric, items, right)
    margins = {pair: margin * _scale(metric, items, pair) for pair in found}
    comparisons = judge_scores(found, margins, better=metric.better)
    return ComparedScores(comparisons, disagreements, int(differing.sum()), why)


def _right(metric: TaskMetric, items: Items) -> Mapping[str, Array] | None:
    """Whether each item that counts is answered rightly; None where an item is not one right or wrong answer."""
    if not all(metric.is_right_or_wrong(parts) for parts in items.values()):
        return None
    return {name: hits[counts > 0] > 0 for name, (hits, counts) in items.items()}


def _pairs(
    metric: TaskMetric, items: Items, right: Mapping[str, Array] | None
) -> tuple[Mapping[tuple[str, str], PairOfScores], str]:
    if right is not None:
        return {
            (a, b): RightOrWrong(int((right[a] & ~right[b]).sum()), int((right[b] & ~right[a]).sum()), len(right[a]))
            for a, b in combinations(right, 2)
        }, ""
    parts = next(iter(items.values()))
    count = len(parts[0])
    if count < FEWEST_ITEMS:
        return {}, f"a verdict on this metric takes {FEWEST_ITEMS} items (got {count})"
    if why := metric.why_not_resampled(parts):
        return {}, why
    figures = {name: partial(_figure, metric, own) for name, own in items.items()}
    found = resampled_pairs(figures, count, metric.resamples)
    all_pairs = len(items) * (len(items) - 1) // 2
    return found, "" if len(found) == all_pairs else "too many resamples of the items have no such figure"


def _figure(metric: TaskMetric, parts: Parts, places: Array) -> float:
    return metric.value(*(each[places] for each in parts))


def _scale(metric: TaskMetric, items: Items, pair: tuple[str, str]) -> float:
    return 1.0 if metric.best_is_1 else max(abs(metric.value(*items[name])) for name in pair)


def _disagreement(items: Items, right: Mapping[str, Array] | None, a: str, b: str) -> Disagreement:
    differing = int(items_differing(items[a], items[b]).sum())
    if right is None:
        return Disagreement(differing)
    return Disagreement(differing, int((right[a] & ~right[b]).sum()), int((right[b] & ~right[a]).sum()))
