"""What a user asks about a run, and the decision that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from fairlap.results.decision.decision import Decision, Judged, MeanOverWorks
from fairlap.results.decision.evidence import evidence_of, headline_results, mean_over_works
from fairlap.results.decision.recommendation import Recommendation, recommend
from fairlap.results.decision.requirements import (
    Qualification,
    Requirement,
    Status,
    qualification,
    requirements_of,
    why_out,
)
from fairlap.results.decision.uses import Use, use_named
from fairlap.results.results import Results


class Question(msgspec.Struct, frozen=True):
    """What a user asks for; parsed once."""

    requirements: tuple[Requirement, ...] = ()
    use: Use | None = None


def question_of(require: str, use: str) -> Question | None:
    """None where neither is given."""
    if not require and not use:
        return None
    return Question(requirements_of(require) if require else (), use_named(use) if use else None)


def decide(results: Results, question: Question) -> Decision:
    """Over all works under the conditions of the verdict: a contestant has to qualify in every one of them."""
    judged = [
        judged_as(qualification(row, question.requirements), contestant=row.contestant, work=each.work.label)
        for each in headline_results(results)
        for row in each.rows
    ]
    statuses = {name: worst([each for each in judged if each.contestant == name]) for name in results.contestants}
    ranked = {row.contestant for each in headline_results(results) for row in each.rows if not why_out(row)}
    found = Decision(
        requirements=[each.text for each in question.requirements], judged=judged, means=_means(results, ranked)
    )
    if question.use is None:
        return found
    return recommended(found, question.use, recommend(statuses, question.use, evidence_of(results), doubts(judged)))


def with_decision(results: Results, question: Question | None) -> Results:
    return results if question is None else replace(results, decision=decide(results, question))


def recommended(found: Decision, use: Use, by: Recommendation) -> Decision:
    return msgspec.structs.replace(
        found,
        use=use.name,
        weights={weight.column: weight.weight for weight in use.weights},
        recommended=list(by.recommended),
        sentences=list(by.sentences),
    )


def judged_as(found: Qualification, *, contestant: str, work: str, run: str = "") -> Judged:
    return Judged(contestant=contestant, work=work, run=run, qualifies=found.status, reasons=found.reasons)


def worst(judged: Sequence[Judged]) -> Status:
    """Of all works; a contestant without a row is not known to qualify."""
    statuses = {each.qualifies for each in judged} or {"unknown"}
    return "no" if "no" in statuses else "unknown" if "unknown" in statuses else "yes"


def doubts(judged: Sequence[Judged]) -> list[str]:
    """Of contestants for which it is open whether they qualify."""
    return [
        f"whether {each.contestant}{f' in {each.run}' if each.run else ''} meets {requirement} ({why})"
        for each in judged
        if each.qualifies == "unknown"
        for requirement, why in each.reasons.items()
    ]


def _means(results: Results, ranked: set[str]) -> list[MeanOverWorks]:
    """Against the baseline, else against the fastest over all works; only where there are several works."""
    if len(results.works()) < 2:
        return []
    names = [name for name in results.contestants if name in ranked]
    baseline = results.baseline or _fastest(results, names)
    found = []
    for name in names:
        if name == baseline or (mean := mean_over_works(results, name, baseline)) is None:
            continue
        found.append(
            MeanOverWorks(
                contestant=name,
                baseline=baseline,
                ratio=mean.ratio,
                low=mean.low,
                high=mean.high,
                inverse=headline_results(results)[0].basis.metric.inverse,
                works=mean.works,
                blocks=mean.blocks,
            )
        )
    return found


def _fastest(results: Results, names: Sequence[str]) -> str:
    """Find the contestant against which no mean is below 1; empty where there is none."""
    means = {name: mean_over_works(results, name, names[0]) for name in names}
    ratios = {name: mean.ratio for name, mean in means.items() if mean is not None}
    return min(ratios, key=ratios.__getitem__, default="")
