"""The sentence about one comparison, for people. Programs read the fields of the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, log, log1p

from fairlap import quantity_text
from fairlap.verdict.blocks import Evidence
from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.gates.required_change import RequiredChange
from fairlap.verdict.gates.slowdown import Slowdown, slowdown_of
from fairlap.verdict.metric import Metric
from fairlap.verdict.warnings import ClocksDisagree, ModesUnderneath, ScatteredBlocks, TooFewBlocks


# What the better contestant costs, in one sentence: ``new is 5 % faster than old for 20 % more peak memory``.
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


_WHERE: dict[Evidence, str] = {
    "between processes": "",
    "within one process": "in this process ",
    "of running servers": "as these servers run, ",
}
_MOST_BLOCKS = 500  # beyond it, quieter conditions are the cheaper way


@dataclass(frozen=True)
class ComparisonText:
    """The parts of the sentence, for a page that sets them apart."""

    claim: str
    """``jax is 1.278 times as fast as torch``"""

    interval: str
    """``[1.247, 1.304]``; empty where the blocks give none."""

    details: str
    """``11 blocks; minimum detectable effect 2.8 % (80 % power)``"""

    inconclusive: bool

    def without_verdict(self) -> str:
        """Write the sentence for a line that already shows the verdict."""
        return f"{f'{self.claim} {self.interval}'.rstrip()}, {self.details}"

    def __str__(self) -> str:
        return f"inconclusive: {self.without_verdict()}" if self.inconclusive else self.without_verdict()


def sentence(comparison: Comparison, *, a_first: bool = False) -> ComparisonText:
    """Write the verdict with its interval, blocks and minimum detectable effect, and the modes underneath.

    The better contestant is the subject, unless ``a_first`` keeps the first of the two there.
    """
    compared = comparison if a_first else from_the_better_side(comparison)
    claim, interval = _claim_and_interval(compared)
    claim = f"{_WHERE[compared.evidence]}{claim}"
    details = "; ".join(_details(compared))
    return ComparisonText(claim, interval, details, compared.verdict is Verdict.INCONCLUSIVE)


def slowdown_sentence(compared: Comparison, max_slowdown: float) -> str:
    """Write what the first of the two takes against the second, as tables show it.

    Its interval is compared with the bound, which follows.
    """
    ratio, bounds = quantity_text.ratio_and_bounds(
        compared.ratio, compared.interval.low, compared.interval.high, apart_from=1 + max_slowdown
    )
    what = compared.metric.name if compared.metric.better == "lower" else f"the {compared.metric.name}"
    if compared.metric.is_speed and compared.metric.better == "lower" and not compared.metric.inverse:
        claim = f"{compared.a} takes {ratio} times as long as {compared.b} {bounds}".rstrip()
    else:
        claim = f"{what} of {compared.a} is {ratio} times that of {compared.b} {bounds}".rstrip()
    parts = [claim, f"{quantity_text.share(max_slowdown, 3)} allowed", *_blocks_and_doubts(compared)]
    if slowdown_of(compared, max_slowdown) is Slowdown.UNDECIDED:
        parts += _why_open(compared)
    return "; ".join(parts)


def required_sentence(compared: Comparison, required: RequiredChange) -> str:
    """Write what the first of the two needs against the second, and the requirement that the interval is compared with.

    As tables show it.
    """
    ratio, bounds = quantity_text.ratio_and_bounds(
        compared.ratio, compared.interval.low, compared.interval.high, apart_from=required.bound
    )
    claim = f"{compared.metric.name} of {compared.a} is {ratio} times that of {compared.b} {bounds}".rstrip()
    parts = [claim, f"required {required.text}", *_blocks_and_doubts(compared)]
    if required.outcome(compared.interval.low, compared.interval.high) is Slowdown.UNDECIDED:
        parts += _why_open(compared)
    return "; ".join(parts)


def _why_open(compared: Comparison) -> list[str]:
    too_few = [str(warning) for warning in compared.warnings if isinstance(warning, TooFewBlocks)]
    return too_few or [sensitivity(Verdict.INCONCLUSIVE, compared.detectable_effect)]


def sensitivity(verdict: Verdict, detectable_effect: float) -> str:
    """Describe what the run could have detected; a shown difference may be smaller, which is no contradiction."""
    if not isfinite(detectable_effect):
        return "no difference is detectable at 80 % power"
    effect = quantity_text.share(detectable_effect)
    if verdict is Verdict.INCONCLUSIVE:
        return f"differences below {effect} are not detectable at 80 % power"
    return f"minimum detectable effect {effect} (80 % power)"


def _claim_and_interval(compared: Comparison) -> tuple[str, str]:
    equivalent = compared.verdict is Verdict.EQUIVALENT
    interval = compared.equivalence_interval if equivalent else compared.interval
    inverted = compared.metric.is_speed and compared.metric.better == "lower"  # half the time is twice as fast
    value = 1 / compared.ratio if inverted else compared.ratio
    shown = interval.inverse() if inverted else interval
    ratio, bounds = quantity_text.ratio_and_bounds(value, shown.low, shown.high)
    if equivalent:
        margin = quantity_text.share(compared.margin)
        return f"{compared.a} and {compared.b} are equivalent within {margin}: {ratio}", bounds
    is_ = "may be" if compared.verdict is Verdict.INCONCLUSIVE else "is"
    if compared.metric.inverse:
        return f"the {compared.metric.inverse} of {compared.a} {is_} {ratio} times that of {compared.b}", bounds
    if compared.metric.is_speed:
        return f"{compared.a} {is_} {ratio} times as fast as {compared.b}", bounds
    return f"{compared.metric.name} of {compared.a} {is_} {ratio} times that of {compared.b}", bounds


def _details(compared: Comparison) -> list[str]:
    blocks, *why = _blocks_and_doubts(compared)
    if compared.verdict is Verdict.EQUIVALENT:
        confidence = quantity_text.share(1 - compared.equivalence_interval.level)
        return [f"{confidence} confidence interval", blocks, *why]
    too_few = [str(warning) for warning in compared.warnings if isinstance(warning, TooFewBlocks)]
    if compared.verdict is Verdict.INCONCLUSIVE and (too_few or _are_clocks_at_fault(compared)):
        return [blocks, *too_few, *why]
    within = f"within {quantity_text.share(compared.margin)}" if compared.within_margin else ""
    reach = sensitivity(compared.verdict, compared.detectable_effect)
    return [part for part in (within, blocks, reach, blocks_to_decide(compared), *why) if part]


def _blocks_and_doubts(compared: Comparison) -> list[str]:
    blocks = quantity_text.count(compared.blocks, "block")
    of_ratio = ScatteredBlocks | ModesUnderneath | ClocksDisagree
    doubts = [str(warning) for warning in compared.warnings if isinstance(warning, of_ratio)]
    return [blocks, *doubts]


def _are_clocks_at_fault(compared: Comparison) -> bool:
    return any(isinstance(warning, ClocksDisagree) for warning in compared.warnings)


def needed_blocks(compared: Comparison) -> int | None:
    """Estimate how many blocks would decide an inconclusive comparison; None where nothing is known of the noise.

    They show the difference at hand, or where it is within the margin, whether there is one of the margin. What is
    detectable shrinks with the square root of the blocks.
    """
    if compared.verdict is not Verdict.INCONCLUSIVE or _are_clocks_at_fault(compared):
        return None
    least = max((each.needed for each in compared.warnings if isinstance(each, TooFewBlocks)), default=0)
    if not isfinite(compared.detectable_effect):
        return least or None
    effect = max(abs(log(compared.ratio)), log1p(compared.margin))
    blocks = ceil(compared.blocks * (log1p(compared.detectable_effect) / effect) ** 2)
    return max(blocks, least, compared.blocks + 1)


def blocks_to_decide(compared: Comparison) -> str:
    """Write ``showing this difference takes about 40 blocks``; empty where the comparison is decided, or too small."""
    blocks = needed_blocks(compared)
    if blocks is None or not isfinite(compared.detectable_effect):
        return ""
    needed = needed_text(blocks)
    if abs(log(compared.ratio)) > log1p(compared.margin):
        return f"showing this difference takes {needed}"
    return f"detecting {quantity_text.share(compared.margin)} takes {needed}"


def needed_text(blocks: int) -> str:
    return f"more than {_MOST_BLOCKS} blocks" if blocks > _MOST_BLOCKS else f"about {blocks} blocks"


def from_the_better_side(comparison: Comparison) -> Comparison:
    """Make the contestant with the better figure the subject; where a difference is shown, that is the winner."""
    a_is_better = comparison.ratio == 1 or (comparison.ratio < 1) == (comparison.metric.better == "lower")
    return comparison if a_is_better else comparison.reversed()
