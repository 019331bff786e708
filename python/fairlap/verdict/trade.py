"""What the better contestant costs, in one sentence: ``new is 5 % faster than old for 20 % more peak memory``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlap import quantity_text
from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.metric import Metric
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
    prices = [(each.metric, each.ratio) for each in costs if each.verdict is Verdict.SLOWER]
    return trade_text(best.a, best.b, best.metric, best.ratio, prices)


def trade_text(better: str, worse: str, metric: Metric, ratio: float, prices: Sequence[tuple[Metric, float]]) -> str:
    """Write the sentence; empty without prices. Ratios are of the better's figure to the worse's."""
    *some, last = [_price(*each) for each in prices] or [""]
    if not last:
        return ""
    gain = quantity_text.share((1 / ratio if metric.better == "lower" else ratio) - 1)
    inverse = metric.inverse
    claim = (
        f"the {inverse} of {better} is {gain} higher than that of {worse}"
        if inverse
        else f"{better} is {gain} faster than {worse}"
    )
    return f"{claim} for {', '.join(some)}{' and ' * bool(some)}{last}"


def _price(metric: Metric, ratio: float) -> str:
    """``20 % more peak memory``; less of what is better when there is more of it."""
    word = "more" if ratio > 1 else "less"
    return f"{quantity_text.share(abs(ratio - 1))} {word} {metric.name}"
