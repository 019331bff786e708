"""How many queries early stopping needs."""

from __future__ import annotations

import pytest
from fairlap.scenarios.load.early_stopping import CONFIDENCE, fewest_queries
from scipy.stats import binom  # type: ignore[import-untyped,unused-ignore]


@pytest.mark.parametrize(
    ("percentile", "late", "queries"),
    [(0.9, 0, 44), (0.9, 1, 64), (0.99, 0, 459), (0.99, 1, 662)],
)
def test_the_counts_are_those_that_loadgen_itself_asks_for(percentile: float, late: int, queries: int) -> None:
    assert fewest_queries(percentile, late) == queries


@pytest.mark.parametrize("percentile", [0.5, 0.9, 0.97, 0.999])
@pytest.mark.parametrize("late", [0, 1, 2, 7])
def test_one_query_fewer_would_not_show_it_at_99_percent(percentile: float, late: int) -> None:
    found = fewest_queries(percentile, late)
    assert binom.cdf(late, found, 1 - percentile) <= 1 - CONFIDENCE < binom.cdf(late, found - 1, 1 - percentile)
