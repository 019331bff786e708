"""What the better contestant costs, in one sentence: ``new is 5 % faster than old for 20 % more peak memory``."""

from __future__ import annotations

from collections.abc import Iterable

from fairlap import quantity_text
from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.sentence import from_the_better_side


def trade_sentence(judged: Comparison, others: Iterable[Comparison]) -> str:
    """Name what the better of a pair is shown to need more of; empty where nothing is shown to be traded.

    ``others`` compare the same pair by other quantities. Percentiles and rates are the same speed once more, and no
    price of it.
    """
    if judged.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    best = from_the_better_side(judged)
    costs = [each if each.a == best.a else each.reversed() for each in others if not each.metric.is_speed]
    *prices, last = [_price(each) for each in costs if each.verdict is Verdict.SLOWER] or [""]
    if not last:
        return ""
    gain = quantity_text.share((1 / best.ratio if best.metric.better == "lower" else best.ratio) - 1)
    inverse = best.metric.inverse
    claim = (
        f"the {inverse} of {best.a} is {gain} higher than that of {best.b}"
        if inverse
        else f"{best.a} is {gain} faster than {best.b}"
    )
    return f"{claim} for {', '.join(prices)}{' and ' * bool(prices)}{last}"


def _price(found: Comparison) -> str:
    """``20 % more peak memory``; less of what is better when there is more of it."""
    word = "more" if found.ratio > 1 else "less"
    return f"{quantity_text.share(abs(found.ratio - 1))} {word} {found.metric.name}"
