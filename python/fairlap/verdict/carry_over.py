"""Whether a contestant is slower right after one contestant than right after another: what ran before moves a figure.

In a block the contestants take turns in a drawn order and in its reverse, by turns. So each contestant has two that run
just before it, one in either direction, and its shift is the log of its time in the drawn order over that in the
reverse. Which direction was drawn is as good as a coin, whatever the first rounds of a block, drift or noise do to a
shift: its sign, counted towards the contestant of interest, is as likely to be either where it has no effect. That is
all that the signed-rank test assumes. When a race ends depends on figures of both directions together, so not on the
coin.

Equal contestants cost each other the same: what one has in the caches is not what the other needs. That moves no ratio,
so an effect is the difference to what others cost. Of three and more, a contestant is compared with itself where it ran
in the middle of the order, after one of the others in either direction. Of two, each runs after itself in one direction
and after the other one in the other; there, what the first costs the second is compared with what that costs the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.exact_tests.signed_rank import centre, log_margin, p_above, walsh_averages

FAMILY_LEVEL = 0.01  # of all pairs together: a warning on equals is rare


@dataclass(frozen=True)
class CarryOver:
    """``affected`` took ``ratio`` times as long right after ``cause`` as after others, or as after itself of two.

    ``excess`` is the ratio without what equal contestants cost each other, by which the margin is judged. ``p`` is of
    this pair alone.
    """

    cause: str
    affected: str
    ratio: float
    excess: float
    p: float
    blocks: int
    of_two: bool


def carry_over(
    names: Sequence[str], orders: Sequence[Sequence[int]], shifts: Floats, margin: float
) -> tuple[CarryOver, ...]:
    """Find contestants that slow others down by more than the margin, a share; the largest effect first.

    ``orders`` has the drawn order of each block, as places in ``names``. ``shifts`` is shaped (blocks, contestants);
    NaN where a block has no round in one direction.
    """
    pairs = list(permutations(range(len(names)), 2))
    found = []
    for cause, affected in pairs:
        own, excess = (_of_two if len(names) == 2 else _of_several)(orders, shifts, cause, affected)
        if not excess.size:
            continue
        walsh = walsh_averages(excess)
        p = float(p_above(walsh))
        if p <= FAMILY_LEVEL / len(pairs) and centre(walsh) > log_margin(margin):
            ratio = float(np.exp(centre(walsh_averages(own))))
            found.append(
                CarryOver(
                    names[cause], names[affected], ratio, float(np.exp(centre(walsh))), p, excess.size, len(names) == 2
                )
            )
    return tuple(sorted(found, key=lambda each: -each.excess))


def _of_two(orders: Sequence[Sequence[int]], shifts: Floats, cause: int, affected: int) -> tuple[Floats, Floats]:
    """Count towards the first of the drawn order: the second ran after it there, and after itself in the reverse."""
    towards = np.array([1.0 if order[0] == cause else -1.0 for order in orders])
    whole = np.isfinite(shifts).all(axis=1)
    own = towards[whole] * shifts[whole, affected]
    return own, own + towards[whole] * shifts[whole, cause]


def _of_several(orders: Sequence[Sequence[int]], shifts: Floats, cause: int, affected: int) -> tuple[Floats, Floats]:
    towards = np.zeros(len(orders))
    for block, order in enumerate(orders):
        place = list(order).index(affected)
        if 0 < place < len(order) - 1:
            towards[block] = (order[place - 1] == cause) - (order[place + 1] == cause)
    used = (towards != 0) & np.isfinite(shifts[:, affected])
    own = towards[used] * shifts[used, affected]
    return own, own
