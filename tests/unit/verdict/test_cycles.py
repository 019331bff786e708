"""Differences of time that the clock of the GPU made are not claimed.

The truth is arithmetic: time is cycles divided by the clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from fairlap import verdict
from fairlap.verdict import Verdict
from fairlap.verdict.warnings import ClocksDisagree

BLOCKS = 24


def compared(
    cycles: float, mhz: Sequence[float], noise: float = 0.001
) -> tuple[verdict.Comparison, Sequence[ClocksDisagree]]:
    """Two contestants, of which the second takes so many times the cycles of the first; each has its clock."""
    rng = np.random.default_rng(1)
    ratios = {"a": 1.0, "b": cycles}
    noisy = {name: 1e6 * ratio * np.exp(noise * rng.standard_normal(BLOCKS)) for name, ratio in ratios.items()}
    times = {name: noisy[name] / clock for name, clock in zip(noisy, mhz, strict=True)}
    by_time, by_cycles = (verdict.judge([verdict.block_table(each)], margin=0.005) for each in (times, noisy))
    [found] = verdict.unless_cycles_disagree(by_time, by_cycles, dict(zip(noisy, mhz, strict=True)))
    return found, [each for each in found.warnings if isinstance(each, ClocksDisagree)]


@pytest.mark.parametrize("mhz", [(1980.0, 1980.0), (1980.0, 1900.0)])
def test_a_difference_of_cycles_and_time_is_claimed(mhz: Sequence[float]) -> None:
    found, disagreements = compared(1.2, mhz)
    assert (found.verdict, disagreements) == (Verdict.FASTER, [])


def test_a_difference_that_only_the_clock_made_is_inconclusive_with_both_clocks() -> None:
    found, [reason] = compared(1.0, (1980.0, 1755.0))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.decided_after_blocks is None
    assert found.ratio == pytest.approx(1755 / 1980, rel=0.01)
    assert (reason.a_mhz, reason.b_mhz, reason.by_time, reason.by_cycles) == (1980.0, 1755.0, "faster", "equivalent")


def test_opposite_orders_are_inconclusive() -> None:
    found, [reason] = compared(0.97, (1980.0, 1755.0))
    assert (found.verdict, reason.by_cycles) == (Verdict.INCONCLUSIVE, "slower")


def test_equivalent_times_of_unlike_cycles_are_inconclusive() -> None:
    found, [reason] = compared(0.9, (1000.0, 900.0))
    assert (found.verdict, reason.by_time, reason.by_cycles) == (Verdict.INCONCLUSIVE, "equivalent", "slower")


def test_what_time_leaves_open_stays_as_it_is() -> None:
    found, disagreements = compared(1.0, (1980.0, 1980.0), noise=0.2)
    assert (found.verdict, disagreements) == (Verdict.INCONCLUSIVE, [])


def test_a_pair_that_cycles_do_not_compare_supports_nothing() -> None:
    """Where only the fastest is compared with the others, it may be another one by cycles."""
    times = {"a": np.full(BLOCKS, 1.0), "b": 1.3 * np.exp(0.001 * np.arange(BLOCKS))}
    [by_time] = verdict.judge([verdict.block_table(times)])
    [found] = verdict.unless_cycles_disagree([by_time], [], {"a": 1980.0, "b": 1755.0})
    assert found.verdict is Verdict.INCONCLUSIVE


def test_the_sentence_names_the_clocks_and_asks_for_no_more_blocks() -> None:
    found, _ = compared(1.0, (1980.0, 1755.0))
    text = str(verdict.sentence(found))
    assert "1755 MHz" in text
    assert "takes about" not in text
    assert math.isfinite(found.detectable_effect)
