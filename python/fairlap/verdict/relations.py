"""What a line of a ranked table says of the others: a place that is shared may be a tie, or may not be decided."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.standing import Standing


def relations(standing: Standing | None, comparisons: Sequence[Comparison], name: str) -> str:
    """Which contestants it is slower than, and of those above it, which it is not: each pair appears once."""
    names = [place.contestant for place in standing.places] if standing is not None else []
    if standing is None or name not in names:
        return ""
    if standing.winner == name:
        return "fastest"
    above = names[: names.index(name)]
    pairs = [each if each.a == name else each.reversed() for each in comparisons if name in (each.a, each.b)]
    pairs.sort(key=lambda each: names.index(each.b))
    slower = [each for each in pairs if each.verdict is Verdict.SLOWER]
    equal = [each.b for each in pairs if each.verdict is Verdict.EQUIVALENT and each.b in above]
    open_ = [each.b for each in pairs if each.verdict is Verdict.INCONCLUSIVE and each.b in above]
    parts = []
    if slower:
        all_others = len(slower) == len(names) - 1 > 1
        parts.append(f"slower than {'all others' if all_others else listed([each.b for each in slower])}")
    if small := [each for each in slower if each.within_margin]:
        parts.append(f"by less than {quantity_text.share(small[0].margin)} of {listed([each.b for each in small])}")
    if equal:
        parts.append(f"equivalent to {listed(equal)} (within {quantity_text.share(pairs[0].margin)})")
    if open_:
        parts.append(f"inconclusive against {listed(open_)}")
    return "; ".join(parts)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
