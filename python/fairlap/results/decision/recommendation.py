"""A recommendation in three sentences: which contestant, on what evidence, and what is unknown.

Contestants are compared in pairs. A column counts with its weight times the logarithm of the ratio, and only where the
two are shown to differ; a difference that is not shown is none. Recommended is what no other one beats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.results.decision.evidence import Difference, Evidence
from fairlap.results.decision.requirements import Status
from fairlap.results.decision.uses import Use, Weight

_LEAST = 1e-12  # below it a score is rounding
_MOST_NAMED = 3


@dataclass(frozen=True)
class Recommendation:
    recommended: tuple[str, ...]  # several where nothing that was measured separates them
    sentences: tuple[str, str, str]


def recommend(statuses: Mapping[str, Status], use: Use, evidence: Evidence, unknown: Sequence[str]) -> Recommendation:
    """Recommend contestants that qualify, by their ``statuses``, which has every contestant.

    ``unknown`` is what else is not known, such as whether a requirement is met.
    """
    eligible = [name for name, status in statuses.items() if status == "yes"]
    found = {
        (a, b, weight.column): evidence(a, b, weight)
        for a in eligible
        for b in eligible
        for weight in use.weights
        if a != b
    }
    unbeaten = tuple(a for a in eligible if not any(_score(found, b, a, use) < -_LEAST for b in eligible if b != a))
    doubts = [*_doubts(found, use), *unknown]
    third = f"Unknown: {'; '.join(doubts)}." if doubts else "Nothing that these weights need is unknown."
    return Recommendation(
        unbeaten, (_first(unbeaten, eligible, statuses, use), _second(found, unbeaten, eligible, use), third)
    )


_Found = Mapping[tuple[str, str, str], Difference]


def _score(found: _Found, a: str, b: str, use: Use) -> float:
    """Below 0 where a is better than b."""
    return sum(_contribution(found[a, b, weight.column], weight) for weight in use.weights)


def _contribution(difference: Difference, weight: Weight) -> float:
    if difference.ratio is None or not difference.is_shown:
        return 0.0
    sign = 1 if weight.better == "lower" else -1
    return sign * weight.weight * math.log(difference.ratio)


def weights_text(use: Use) -> str:
    return ", ".join(f"{weight.words} {quantity_text.share(weight.weight)}" for weight in use.weights)


def _first(unbeaten: Sequence[str], eligible: Sequence[str], statuses: Mapping[str, Status], use: Use) -> str:
    by_weights = f"by the weights {weights_text(use)}"
    if not eligible:
        open_ = [name for name, status in statuses.items() if status == "unknown"]
        rest = f", and it is unknown for {', '.join(open_)}" if open_ else ""
        return f"No contestant is recommended for {use.name}: none is shown to qualify{rest}."
    if not unbeaten:
        return f"No contestant is recommended for {use.name}: each is beaten by another one {by_weights}."
    if len(unbeaten) == 1:
        others = (
            "it is the only one that qualifies"
            if len(eligible) == 1
            else f"no other that qualifies beats it {by_weights}"
        )
        return f"For {use.name}, {unbeaten[0]} is recommended: {others}."
    return f"For {use.name}, {', '.join(unbeaten)} are equally suitable: none is shown to beat another {by_weights}."


def _second(found: _Found, unbeaten: Sequence[str], eligible: Sequence[str], use: Use) -> str:
    others = [name for name in eligible if name not in unbeaten] if len(unbeaten) == 1 else list(unbeaten[1:])
    if not unbeaten or not others:
        return "Evidence: there is no second contestant that qualifies to compare with."
    best = unbeaten[0]
    parts = [_against(found, best, other, use) for other in others[:_MOST_NAMED]]
    more = len(others) - _MOST_NAMED
    if more > 0:
        parts.append(f"and {quantity_text.count(more, 'other')} in the same way")
    return f"Evidence: {'; '.join(parts)}."


def _against(found: _Found, best: str, other: str, use: Use) -> str:
    shown = [
        f"{difference.ratio:.3g} times the {weight.words} ({difference.basis})"
        for weight in use.weights
        if (difference := found[best, other, weight.column]).is_shown and difference.ratio is not None
    ]
    return f"{best} against {other} has {', '.join(shown)}" if shown else f"{best} and {other} are not shown to differ"


def _doubts(found: _Found, use: Use) -> list[str]:
    """Columns without a figure, with the reason, and those in which no pair is shown to differ."""
    doubts = []
    for weight in use.weights:
        own = [difference for (_, _, column), difference in found.items() if column == weight.column]
        without = next((each for each in own if each.ratio is None), None)
        if without is not None:
            often = "" if all(each.ratio is None for each in own) else " of some contestants"
            doubts.append(f"{weight.words}{often} ({without.absent})")
        elif own and not any(each.is_shown for each in own):
            doubts.append(f"whether {weight.words} differs")
    return doubts
