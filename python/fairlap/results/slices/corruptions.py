"""Scores of all contestants of a run on corrupted data, and whether any loses more there than on the data as they are.

The corruption error is that of Hendrycks and Dietterich (2019), with the contestant that is compared with in place of
AlexNet: errors summed over severities, divided by its own. An error is what a score lacks to 1, or a score of which
lower is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from fairlap.models.slices.corruptions import ALL
from fairlap.models.task_metrics import Score, metric_named
from fairlap.race.run import Run
from fairlap.results.slices.compared_with import Key, compared_slices, compared_text
from fairlap.results.slices.judged_changes import Changes, Judged, changes_of, judged_changes, slice_score
from fairlap.results.slices.slice_score import CorruptedScore, CorruptionScore


def scores_on_corrupted(run: Run, baseline: str = "") -> dict[Key, dict[str, CorruptedScore]]:
    """By contestant and work, then by metric; nothing where no corruptions were asked for."""
    slices = compared_slices(run, lambda process: process.corrupted, baseline)
    scored: dict[Key, dict[str, CorruptedScore]] = {key: {} for key in slices.others}
    for metric in slices.metrics:
        changes = changes_of(metric, slices)
        judged = _judged(metric, changes, slices.scores_of_all(metric))
        by_corruption = {key: _by_corruption(own.scores[metric]) for key, own in slices.found.items()}
        for key, other in slices.others.items():
            against = None if other is None else by_corruption[other]
            corruptions = {
                name: CorruptionScore(
                    by_severity=dict(severities),
                    mean=_mean(severities.values()),
                    corruption_error=None if against is None else _ratio(metric, severities, against[name]),
                    slice=slice_score(name, None, key, changes, judged),
                )
                for name, severities in by_corruption[key].items()
            }
            whole = next(iter(corruptions)) if len(corruptions) == 1 else ALL
            scored[key][metric] = CorruptedScore(
                against="" if other is None else compared_text(run.plan, key, other),
                mean=_mean_of([each.mean for each in corruptions.values()]),
                mean_corruption_error=_mean_of([each.corruption_error for each in corruptions.values()]),
                corruptions=corruptions,
                all=slice_score(whole, None, key, changes, judged),
            )
    return scored


def _judged(metric: str, changes: Changes, scores: Mapping[Key, float]) -> Judged:
    """Judge the mean over corruptions as one family of all contestants, and single corruptions as another one."""
    of_all = {key: {name: each for name, each in own.items() if name == ALL} for key, own in changes.items()}
    single = {key: {name: each for name, each in own.items() if name != ALL} for key, own in changes.items()}
    return {**judged_changes(metric, of_all, scores), **judged_changes(metric, single, scores)}


def _by_corruption(scores: Mapping[str, Score | None]) -> dict[str, dict[str, Score | None]]:
    found: dict[str, dict[str, Score | None]] = {}
    for text, score in scores.items():
        name, _, severity = text.partition(":")
        found.setdefault(name, {})[severity] = score
    return found


def _mean(scores: Iterable[Score | None]) -> float | None:
    return _mean_of([None if score is None else score.value for score in scores])


def _mean_of(values: Sequence[float | None]) -> float | None:
    """None where one of them is absent."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _ratio(metric: str, own: Mapping[str, Score | None], other: Mapping[str, Score | None]) -> float | None:
    errors, other_errors = (_mean_error(metric, each.values()) for each in (own, other))
    return None if errors is None or not other_errors else errors / other_errors


def _mean_error(metric: str, scores: Iterable[Score | None]) -> float | None:
    of = metric_named(metric)
    mean = _mean(scores)
    if mean is None or (of.better == "higher" and not of.best_is_1):
        return None
    return 1 - mean if of.better == "higher" else mean
