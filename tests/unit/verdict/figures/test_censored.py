"""The median time to an event that not every run has reached."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict import median_time

# Acute myelogenous leukaemia (Miller, 1981): weeks until relapse, and whether it was seen. The medians are published.
MAINTAINED = {9: 1, 13: 1, 13.5: 0, 18: 1, 23: 1, 28: 0, 31: 1, 34: 1, 45: 0, 48: 1, 161: 0}
NOT_MAINTAINED = [
    (5, 1),
    (5, 1),
    (8, 1),
    (8, 1),
    (12, 1),
    (16, 0),
    (23, 1),
    (27, 1),
    (30, 1),
    (33, 1),
    (43, 1),
    (45, 1),
]


def test_published_medians() -> None:
    assert median_time(list(MAINTAINED), [bool(seen) for seen in MAINTAINED.values()])[0] == 31
    times, seen = zip(*NOT_MAINTAINED, strict=True)
    assert median_time(times, [bool(each) for each in seen])[0] == 23


def test_what_was_not_reached_counts_as_longer() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 9.0, 9.0]
    assert median_time(times, [True] * 4 + [False] * 2)[0] == 3.0
    assert median_time(times, [True] * 2 + [False] * 4) == (math.inf, 1.0, math.inf)
    assert median_time(times, [False] * 6) == (math.inf, math.inf, math.inf)


def test_the_interval_covers_the_true_median() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        times, ends = rng.exponential(1.0, 30), rng.uniform(0.5, 4.0, 30)
        _, low, high = median_time(np.minimum(times, ends).tolist(), (times <= ends).tolist())
        covered += low <= math.log(2) <= high
    assert covered / 400 == pytest.approx(0.95, abs=0.04)
