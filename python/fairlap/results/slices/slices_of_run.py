"""All scores of a run on slices of the data, by contestant and work, then by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlap.models.task_metrics import Score
from fairlap.race.run import Run
from fairlap.results.slices.compared_with import Key, compared_slices, compared_text
from fairlap.results.slices.corruptions import scores_on_corrupted
from fairlap.results.slices.judged_changes import Changes, Judged, changes_of, judged_changes, slice_score
from fairlap.results.slices.slice_score import CorruptedScore, GroupedScore


def grouped_scores(run: Run, baseline: str = "") -> dict[Key, dict[str, GroupedScore]]:
    """By contestant and work, then by metric; nothing where no groups were given."""
    slices = compared_slices(run, lambda process: process.groups, baseline)
    grouped: dict[Key, dict[str, GroupedScore]] = {key: {} for key in slices.others}
    for metric in slices.metrics:
        changes = changes_of(metric, slices)
        judged = _judged(metric, changes, slices.scores_of_all(metric))
        for key, other in slices.others.items():
            scores = slices.found[key].scores[metric]
            grouped[key][metric] = GroupedScore(
                against="" if other is None else compared_text(run.plan, key, other),
                largest_difference=_range(list(scores.values())),
                groups=[slice_score(name, score, key, changes, judged) for name, score in scores.items()],
            )
    return grouped


def _judged(metric: str, changes: Changes, scores: Mapping[Key, float]) -> Judged:
    """Judge the first one alone of two groups: the second is what the first is compared with."""
    if any(len(own) != 2 for own in changes.values()):
        return judged_changes(metric, changes, scores)
    found = judged_changes(metric, {key: dict(list(own.items())[:1]) for key, own in changes.items()}, scores)
    second = {key: list(own)[1] for key, own in changes.items()}
    mirrored = {(key, second[key]): each.mirrored(each.a, second[key]) for (key, _), each in found.items()}
    return {**found, **mirrored}


def _range(scores: Sequence[Score | None]) -> float | None:
    known = [score.value for score in scores if score is not None]
    return max(known) - min(known) if len(known) > 1 else None


@dataclass(frozen=True)
class Slices:
    groups: Mapping[Key, dict[str, GroupedScore]]
    corrupted: Mapping[Key, dict[str, CorruptedScore]]


def slices_of_run(run: Run, baseline: str = "") -> Slices:
    return Slices(grouped_scores(run, baseline), scores_on_corrupted(run, baseline))
