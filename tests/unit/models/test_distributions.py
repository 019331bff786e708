"""Random numbers of the right distribution pass, whatever the generator; others, and repeated ones, do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.science_operations.residuals import distances
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped,unused-ignore]

Array = npt.NDArray[Any]
RNG = np.random.default_rng(1)
COUNT = 20_000
GENERATORS = (np.random.PCG64, np.random.Philox, np.random.MT19937, np.random.SFC64)


def wrongs(numbers: Array, *, uniform: bool) -> list[str]:
    return [what for what, off, allowed in distances(numbers.astype(np.float64), uniform=uniform) if off > allowed]


@given(st.integers(0, 2**32), st.sampled_from(GENERATORS), st.sampled_from((1000, 30_000)), st.booleans())
def test_numbers_of_the_distribution_pass(seed: int, kind: Any, count: int, uniform: bool) -> None:
    rng = np.random.Generator(kind(seed))
    numbers = rng.random(count, np.float32) if uniform else rng.standard_normal(count, np.float32)
    assert wrongs(numbers, uniform=uniform) == []


OTHERS: dict[str, tuple[bool, Callable[[], Array]]] = {
    "constant": (True, lambda: np.full(COUNT, 0.5)),
    "up to 1.1": (True, lambda: 1.1 * RNG.random(COUNT)),
    "triangular": (True, lambda: (RNG.random(COUNT) + RNG.random(COUNT)) / 2),
    "in order": (True, lambda: np.sort(RNG.random(COUNT))),
    "the same twice": (True, lambda: np.tile(RNG.random(COUNT // 2), 2)),
    "pairs": (False, lambda: np.repeat(RNG.standard_normal(COUNT // 2), 2)),
    "normal for uniform": (True, lambda: RNG.standard_normal(COUNT)),
    "uniform for normal": (False, lambda: RNG.random(COUNT)),
    "scaled uniform": (False, lambda: np.sqrt(12) * (RNG.random(COUNT) - 0.5)),
    "wide": (False, lambda: 1.05 * RNG.standard_normal(COUNT)),
    "moved": (False, lambda: 0.06 + RNG.standard_normal(COUNT)),
    "heavy tails": (False, lambda: RNG.standard_t(3, COUNT) / np.sqrt(3)),
    "few values": (True, lambda: RNG.integers(0, 256, COUNT) / 256 + 1 / 512),
}


@pytest.mark.parametrize("name", OTHERS)
def test_numbers_of_another_distribution_do_not(name: str) -> None:
    uniform, draw = OTHERS[name]
    assert wrongs(draw(), uniform=uniform)


def test_the_largest_distance_is_that_of_scipy() -> None:
    numbers = RNG.standard_normal(500)
    found = {what: off for what, off, _ in distances(numbers, uniform=False)}
    assert found["Kolmogorov-Smirnov distance"] == pytest.approx(stats.kstest(numbers, "norm").statistic)
