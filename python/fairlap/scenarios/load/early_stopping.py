"""How many queries LoadGen's early stopping needs: so many that the latency at a percentile is known at 99 %.

A run of n queries, t of them late, shows that the share of late ones is below 1 - p if so few late ones had a chance of
at most 1 % otherwise: the binomial distribution's P(T <= t) with n trials of 1 - p (MLPerf Inference rules, appendix
"Early stopping").
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

CONFIDENCE = 0.99


def fewest_queries(percentile: float, late: int) -> int:
    """Find the fewest queries with which a run that has so many late ones is accepted."""
    few, many = late, late + 1
    while _chance(many, late, percentile) > 1 - CONFIDENCE:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if _chance(middle, late, percentile) > 1 - CONFIDENCE else (few, middle)
    return many


def _chance(queries: int, late: int, percentile: float) -> float:
    """Of at most so many late ones, if each one is late with the chance 1 - percentile."""
    on_time, too_late = log(percentile), log1p(-percentile)
    return sum(
        exp(
            lgamma(queries + 1)
            - lgamma(each + 1)
            - lgamma(queries - each + 1)
            + each * too_late
            + (queries - each) * on_time
        )
        for each in range(min(late, queries) + 1)
    )
