"""Changes on slices of the data as processes found them, judged as one family of a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fairlap.models.slices.slice_scores import SliceChange
from fairlap.models.task_metrics import Score, metric_named
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.slices.compared_with import ComparedSlices, Key
from fairlap.results.slices.slice_score import SliceOutcome, SliceScore
from fairlap.verdict.comparison import Verdict
from fairlap.verdict.scores.changes import UnequalChange
from fairlap.verdict.scores.judge_scores import ScoreComparison, judge_scores

MARGIN = 0.01
"""Of differences of changes: as a share of the larger score, of metrics whose best value is not 1."""
_OUTCOMES: Mapping[Verdict, SliceOutcome] = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "equivalent",
    Verdict.INCONCLUSIVE: "inconclusive",
}

Changes = Mapping[Key, Mapping[str, SliceChange]]
"""By contestant and work, then by slice."""
Judged = Mapping[tuple[Key, str], ScoreComparison]


def changes_of(metric: str, slices: ComparedSlices) -> Changes:
    """Of each contestant from the one that it is compared with; the one of the two that answered later has them."""
    found = {key: own.changes for key, own in slices.found.items()}
    return {
        key: {each.slice: each for each in _between(key, other, found) if each.metric == metric}
        for key, other in slices.others.items()
        if other is not None
    }


def _between(key: Key, other: Key, found: Mapping[Key, Sequence[SliceChange]]) -> Iterator[SliceChange]:
    for each in found[key]:
        if (each.against, each.against_work) == other:
            yield each
    for each in found[other]:
        if (each.against, each.against_work) == key:
            yield _reversed(each)


def _reversed(each: SliceChange) -> SliceChange:
    change, elsewhere = (None if end is None else -end for end in (each.change, each.elsewhere))
    return msgspec.structs.replace(each, change=change, elsewhere=elsewhere)


def judged_changes(metric: str, changes: Changes, scores: Mapping[Key, float]) -> Judged:
    """``scores`` are those of all contestants on all of the data."""
    pairs: dict[tuple[str, str], UnequalChange] = {}
    margins: dict[tuple[str, str], float] = {}
    keys: dict[tuple[str, str], tuple[Key, str]] = {}
    for key, own in changes.items():
        for name, each in own.items():
            if each.change is not None and each.elsewhere is not None and each.standard_error is not None:
                pair = (" ".join(key), name)
                apart = each.change - each.elsewhere
                pairs[pair] = UnequalChange(apart, each.standard_error, each.degrees, each.method)
                margins[pair] = _margin(metric, scores[key], scores[each.against, each.against_work])
                keys[pair] = key, name
    judged = judge_scores(pairs, margins, better=metric_named(metric).better)
    return {keys[each.a, each.b]: each for each in judged}


def _margin(metric: str, *scores: float) -> float:
    return MARGIN if metric_named(metric).best_is_1 else MARGIN * max(map(abs, scores))


def slice_score(name: str, score: Score | None, key: Key, changes: Changes, judged: Judged) -> SliceScore:
    change, found = changes.get(key, {}).get(name), judged.get((key, name))
    if change is None or found is None:
        return SliceScore(name=name, score=score, why_not="" if change is None else change.why_not)
    return SliceScore(
        name=name,
        score=score,
        change=change.change,
        elsewhere=change.elsewhere,
        apart=Estimate(found.difference, found.interval.low, found.interval.high),
        level=found.interval.level,
        p_adjusted=found.p_adjusted,
        outcome=_OUTCOMES[found.verdict],
        margin=found.margin,
        detectable=found.detectable_effect,
        method=found.method,
    )
