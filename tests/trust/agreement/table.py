"""The agreements as a table in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlap import quantity_text

from .pairs import Agreement

WORDS = {True: "agrees", False: "does not agree", None: "too few pairs to tell"}
PER_SECOND = ("largest rate",)
SCORE = "score of "


def as_table(found: Sequence[Agreement]) -> str:
    lines = [
        "| scenario | contestant | threads | by hand | fairlap / by hand | allowed | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in found:
        ratio = f"{each.ratio:.3f} [{each.low:.3f}, {each.high:.3f}]"
        contestant = each.contestant.partition(":call=")[0] if "python:" in each.contestant else each.contestant
        allowed, word = f"±{each.allowed:.0%}", WORDS[each.agrees]
        if math.isinf(each.allowed):
            allowed, word = "any", "near the floor"
        lines.append(
            f"| {each.case} | {contestant} | {each.threads} | {_by_hand(each)} | {ratio} | {allowed} | {word} |"
        )
    return "\n".join(lines)


def _by_hand(each: Agreement) -> str:
    if each.case in PER_SECOND:
        return f"{each.by_hand:,.0f}/s"
    if each.case.startswith(SCORE):
        return f"{each.by_hand:.1%}"
    return quantity_text.duration(each.by_hand * (1e9 if each.case == "time to score" else 1))
