"""The columns of a row that tell of feeding.

Shares of the time are those of one process, the one in the middle by the share that it waited, so that what stands
beside each other adds up to the whole. Medians of the parts would not, and a mean would be drawn off by one process
that the machine held up. Of two in the middle it is the one that waited longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high

import numpy as np

from fairlap.ledger.estimates import Told, estimate, told_or, why_not
from fairlap.ledger.schema import Estimate
from fairlap.race.fed_figures import items_per_s, time_shares, waited_share
from fairlap.race.laps import Lap
from fairlap.race.results import Contender
from fairlap.verdict.sign_interval import sign_interval

_ALPHA = 0.05


def feeding_of(contender: Contender) -> dict[str, Told]:
    laps = contender.finished
    why = why_not(contender) or "nothing was fed; see --data"
    return {
        "pipeline_throughput_per_s": told_or(estimate(laps, items_per_s), why),
        "waited_share": told_or(_waited(_shares(laps)), why),
    }


def stall_shares_of(contender: Contender) -> dict[str, float]:
    """Empty where there is no share that was waited."""
    laps = contender.finished
    shares = _shares(laps)
    return time_shares(laps[shares.index(median_high(shares))]) if shares else {}


def _shares(laps: Sequence[Lap]) -> list[float]:
    """For each process the share that it waited; none when some were not fed."""
    shares = [waited_share(lap) for lap in laps]
    known = [share for share in shares if share is not None]
    return known if len(known) == len(shares) else []


def _waited(shares: Sequence[float]) -> Estimate | None:
    """A share may be zero, so there is no logarithm here; the sign test's interval is the same without."""
    if not shares:
        return None
    low, high = sign_interval(np.asarray(shares), _ALPHA)
    value = median_high(shares)
    return Estimate(value, low, high) if np.isfinite(high) else Estimate(value)
