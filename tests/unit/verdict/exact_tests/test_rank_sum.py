"""The interval of a shift between two samples agrees with SciPy's exact test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict.exact_tests.rank_sum import shift
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]


@pytest.mark.parametrize(("first", "second"), [(2, 10), (3, 10), (5, 8), (5, 50), (1, 40)])
def test_a_shift_is_in_the_interval_where_the_exact_test_does_not_reject_it(first: int, second: int) -> None:
    drawn = np.random.default_rng([first, second])
    for _ in range(20):
        a, b = drawn.normal(1, 1, first), drawn.normal(0, 1, second)
        middle, low, high = shift(a, b)
        assert low <= middle <= high
        for end, beyond in ((low, -1), (high, 1)):
            assert mannwhitneyu(a - (end + 1e-9 * beyond), b, method="exact").pvalue <= 0.05
            assert mannwhitneyu(a - (end - 1e-9 * beyond), b, method="exact").pvalue > 0.05


@pytest.mark.parametrize(("first", "second"), [(1, 10), (2, 7), (3, 3)])
def test_too_small_samples_bound_nothing(first: int, second: int) -> None:
    assert shift(np.full(first, 100.0), np.arange(float(second)))[1:] == (-math.inf, math.inf)
