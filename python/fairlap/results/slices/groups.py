"""Scores by group of all contestants of a run, and whether any group changes more than the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlap.models.slices.slice_scores import GroupScores
from fairlap.models.task_metrics import Score
from fairlap.race.run import Run
from fairlap.results.slices.compared_with import Key, compared_text, compared_with
from fairlap.results.slices.judged_changes import Changes, Judged, changes_of, judged_changes, slice_score
from fairlap.results.slices.slice_score import GroupedScore


def grouped_scores(run: Run, baseline: str = "") -> dict[Key, dict[str, GroupedScore]]:
    """By contestant and work, then by metric; nothing where no groups were given."""
    found: dict[Key, GroupScores] = {}
    of_all: dict[Key, dict[str, Score]] = {}
    for process in run.processes:
        if process.groups is not None:
            key = (process.contestant, process.work_id)
            found[key], of_all[key] = process.groups, process.scores
    others = compared_with(run.plan, found, baseline)
    grouped: dict[Key, dict[str, GroupedScore]] = {key: {} for key in others}
    for metric in dict.fromkeys(metric for key in others for metric in found[key].scores):
        changes = changes_of(metric, others, {key: own.changes for key, own in found.items()})
        judged = _judged(metric, changes, {key: own[metric].value for key, own in of_all.items()})
        for key, other in others.items():
            scores = found[key].scores[metric]
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
