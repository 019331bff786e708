"""Keep, discard or undecided: one change of code against its base, with a level for each of the two errors.

What is judged is the speedup, the base's time divided by the change's, and whether it exceeds 1 + gain. To keep is a
claim, tested at the level that the caller can spend on it: a share of one error rate over a whole search. To discard
costs no more than a lost chance, so it is tested at 2.5 % in each try, as the end of a 95 % interval is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairlap.verdict.blocks import BadOption, Floats, require_between
from fairlap.verdict.comparison import Interval
from fairlap.verdict.detectable_effects import blocks_needed
from fairlap.verdict.exact_tests.sequential import is_shown_above, largest_log_bet, lower_end, p_at_end
from fairlap.verdict.exact_tests.signed_rank import centre, walsh_averages

ONE_SIDE = 0.025
"""Of a 95 % interval."""
_LEAST_SPREAD = 1e-6

Decision = Literal["keep", "discard", "undecided"]


@dataclass(frozen=True)
class Candidate:
    """What is known of a change after some blocks.

    ``interval`` holds for this change alone, in 95 % of races; its upper end decides about discarding. Each end of
    ``over_search`` holds for every try of a search together, as often as the search states; its lower end decides about
    keeping. Of a change that was judged alone the two are the same.
    """

    decision: Decision
    blocks: int
    speedup: float
    interval: Interval
    over_search: Interval
    spread: float  # standard deviation of the blocks' log speedups
    e: float  # the largest bet against "not faster by more than the gain"; shown where it is 2 / level
    p: float | None  # of the signed ranks, one-sided, where the race ended undecided; shown where it is level / 2
    blocks_needed: int | None  # to keep it at 80 % power, were the speedup the estimated one; None if it is too small


def decision_after(log_speedups: Floats, gain: float, level: float, *, ended: bool) -> Decision:
    """Decide after these blocks; ``ended`` where no further block will run, for a reason that is blind to them."""
    edge = float(np.log1p(gain))
    if is_shown_above(log_speedups, edge, level, ended=ended):
        return "keep"
    return "discard" if is_shown_above(-log_speedups, -edge, ONE_SIDE, ended=ended) else "undecided"


def candidate(log_speedups: Floats, *, gain: float = 0.0, level: float = ONE_SIDE, ended: bool = True) -> Candidate:
    """Judge a change by the logarithm of its speedup in each block."""
    require_between("level", level, 0.0, 1.0)
    edge = float(np.log1p(gain))
    middle = float(centre(walsh_averages(log_speedups)))
    spread = float(log_speedups.std(ddof=1)) if log_speedups.size > 1 else float("inf")
    return Candidate(
        decision_after(log_speedups, gain, level, ended=ended),
        log_speedups.size,
        float(np.exp(middle)),
        _interval(log_speedups, ONE_SIDE, ended=ended),
        _interval(log_speedups, level, ended=ended),
        spread,
        float(np.exp(largest_log_bet(log_speedups, edge))),
        p_at_end(log_speedups, edge) if ended else None,
        _blocks_needed(middle - edge, spread, level),
    )


def lowest_speedup(log_speedups: Floats, level: float, *, ended: bool) -> float:
    """Find the speedup that is exceeded, wrongly at this level; 0 where too few blocks ran."""
    return float(np.exp(lower_end(log_speedups, level, ended=ended)))


def highest_speedup(log_speedups: Floats, level: float, *, ended: bool) -> float:
    """Find the speedup that is not reached, wrongly at this level; infinite where too few blocks ran."""
    return float(np.exp(-lower_end(-log_speedups, level, ended=ended)))


def _interval(log_speedups: Floats, level: float, *, ended: bool) -> Interval:
    low, high = (end(log_speedups, level, ended=ended) for end in (lowest_speedup, highest_speedup))
    return Interval(low, high, 2 * level)


def _blocks_needed(log_effect: float, spread: float, level: float) -> int | None:
    """Count the blocks with which the test at the end finds the effect; bets may need fewer."""
    if log_effect <= 0 or not np.isfinite(spread):
        return None
    try:
        return blocks_needed(float(np.expm1(log_effect)), max(spread, _LEAST_SPREAD), level=level)
    except BadOption:  # of hundreds of blocks
        return None
