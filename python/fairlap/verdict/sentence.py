"""The sentence a person reads for one comparison.

Digits are chosen so that a bound printed beside a verdict never rounds onto the value that the
verdict excludes.
"""

from math import ceil, isfinite, log1p, log10

from fairlap.verdict.comparison import Comparison, Interval, Verdict
from fairlap.verdict.doubts import ModesUnderneath, TooFewBlocks
from fairlap.verdict.modes import Modes

_MOST_BLOCKS = 500  # beyond it, quieter conditions are the cheaper way


def sentence(comparison: Comparison) -> str:
    """Say the verdict with its interval, the blocks, what would not have shown, and modes underneath."""
    return sentence_about_a(_from_the_better_side(comparison))


def sentence_about_a(comparison: Comparison) -> str:
    """The same from the side of the first of the two, whoever is better."""
    modes = [f"; {doubt}" for doubt in comparison.doubts if isinstance(doubt, ModesUnderneath)]
    return _verdict(comparison) + "".join(modes)


def _verdict(told: Comparison) -> str:
    blocks = f"{told.blocks} blocks" + ("" if told.evidence == "between processes" else f" {told.evidence}")
    too_few = next((doubt for doubt in told.doubts if isinstance(doubt, TooFewBlocks)), None)
    if told.verdict is Verdict.INCONCLUSIVE and too_few is not None:
        return f"inconclusive: {too_few}; {_claim(told, None)} in these {blocks}"
    if told.verdict is Verdict.EQUIVALENT:
        inside = _shown(told.equivalence_interval, told)
        confidence = f"{100 * (1 - told.equivalence_interval.level):.3g} %"
        same = f"{told.a} and {told.b} are equivalent within {_percent(told.margin)}"
        return f"{same}: {inside} at {confidence}, {blocks}"
    reach = sensitivity(told.verdict, _percent(told.detectable_effect))
    if told.verdict is Verdict.INCONCLUSIVE:
        return f"inconclusive: {_claim(told, told.interval)}, {blocks}; {reach}{_blocks_to_decide(told)}"
    small = f", which is within {_percent(told.margin)}" if told.within_margin else ""
    return f"{_claim(told, told.interval)}{small}, {blocks}; {reach}"


def sensitivity(shown: Verdict, detectable: str) -> str:
    """A difference that is shown may be smaller than what such a run finds reliably; it is then no contradiction."""
    if shown is Verdict.INCONCLUSIVE:
        return f"differences under {detectable} would not have shown"
    return f"such a run finds {detectable} four times in five"


def modes_sentence(contestant: str, modes: Modes, unit: str) -> str:
    """Say each mode with its share; there is no single figure to say."""
    listed = ", ".join(f"{mode.value:.4g} {unit} in {100 * mode.share:.0f} % of processes" for mode in modes.modes)
    return f"{contestant} runs in {len(modes.modes)} modes: {listed}"


def _blocks_to_decide(told: Comparison) -> str:
    """How many would have shown the margin: what can be shown shrinks with the square root of the blocks."""
    if not isfinite(told.detectable_effect) or told.detectable_effect <= told.margin:
        return ""
    wanted = told.blocks * (log1p(told.detectable_effect) / log1p(told.margin)) ** 2
    if wanted > _MOST_BLOCKS:
        return f"; over {_MOST_BLOCKS} blocks would be needed to show {_percent(told.margin)}"
    return f"; about {ceil(wanted)} blocks would show {_percent(told.margin)}"


def _from_the_better_side(comparison: Comparison) -> Comparison:
    """Whoever has the better figure comes first; where a difference is shown, that is the winner."""
    a_is_better = comparison.ratio == 1 or (comparison.ratio < 1) == (comparison.metric.better == "lower")
    return comparison if a_is_better else comparison.reversed()


def _claim(told: Comparison, interval: Interval | None) -> str:
    ratio = f"{_told_ratio(told):.{_decimals(_told_interval(told.interval, told))}f}"
    bounds = "" if interval is None else f" {_bounds(interval, told)}"
    if told.metric.is_speed:
        return f"{told.a} is {ratio} times as fast as {told.b}{bounds}"
    return f"{told.metric.name} of {told.a} is {ratio} times that of {told.b}{bounds}"


def _shown(interval: Interval, told: Comparison) -> str:
    return f"{_told_ratio(told):.{_decimals(_told_interval(interval, told))}f} {_bounds(interval, told)}"


def _bounds(interval: Interval, told: Comparison) -> str:
    turned = _told_interval(interval, told)
    decimals = _decimals(turned)
    return f"[{turned.low:.{decimals}f}, {turned.high:.{decimals}f}]"


def _is_inverted(told: Comparison) -> bool:
    """Half the time is twice as fast."""
    return told.metric.is_speed and told.metric.better == "lower"


def _told_ratio(told: Comparison) -> float:
    return 1 / told.ratio if _is_inverted(told) else told.ratio


def _told_interval(interval: Interval, told: Comparison) -> Interval:
    return interval.inverse() if _is_inverted(told) else interval


def _decimals(printed: Interval) -> int:
    """Two digits of the width, and more until neither bound looks like 1 without being 1."""
    if not isfinite(printed.high):
        return 2
    width = max(printed.high - printed.low, 1e-6)
    decimals = min(6, max(2, 1 - round(log10(width) - 0.5)))
    while any(bound != 1 and float(f"{bound:.{decimals}f}") == 1 for bound in (printed.low, printed.high)):
        decimals += 1
    return decimals


def _percent(share: float) -> str:
    if not isfinite(share):
        return "any size"
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:,.0f} %"
