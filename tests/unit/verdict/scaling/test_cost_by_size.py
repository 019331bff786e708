"""The cost of a call by its size, fitted to planted costs, and where two contestants cross."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import Crossing, NoCost, block_table, cost_by_size, crossings, judge
from fairlap.verdict.blocks import Floats
from fairlap.verdict.comparison import Comparison

SIZES: Floats = np.exp2(np.arange(10, 21, dtype=np.float64))


def times(
    exact_ns: Floats, *, noise: float = 0.02, between: float = 0.0, drift: float = 0.0, blocks: int = 10, seed: int = 0
) -> Floats:
    """``between`` is what changes from size to size and not from block to block, ``drift`` the other way round."""
    rng = np.random.default_rng(seed)
    moved = exact_ns * np.exp(between * rng.standard_normal(exact_ns.size))
    drawn: Floats = moved * np.exp(noise * rng.standard_normal((blocks, exact_ns.size)))
    return drawn * np.exp(drift * rng.standard_normal((blocks, 1)))


def test_what_slows_whole_blocks_down_bends_no_law() -> None:
    found = cost_by_size(times(2000 + 0.5 * SIZES**1.3, drift=0.5, noise=0.01), SIZES)
    assert found.exponent is not None
    assert found.exponent.high - found.exponent.low < 0.02
    assert found.exponent.low <= 1.3 <= found.exponent.high


def test_a_linear_cost_is_found_with_its_overhead_and_slope() -> None:
    found = cost_by_size(times(2000 + 0.5 * SIZES), SIZES)
    assert (found.law, found.exponent, found.sizes) == ("linear", None, SIZES.size)
    assert found.overhead_ns.low <= 2000 <= found.overhead_ns.high
    assert found.slope_ns.low <= 0.5 <= found.slope_ns.high
    assert found.overhead_ns.high / found.overhead_ns.low < 1.1
    assert found.time_ns(4096) == pytest.approx(2000 + 0.5 * 4096, rel=0.03)


@pytest.mark.parametrize("exponent", [0.5, 1.3, 2.0, 3.0])
def test_without_noise_a_power_law_is_found_exactly(exponent: float) -> None:
    found = cost_by_size(times(2000 + 0.5 * SIZES**exponent, noise=0.0), SIZES)
    assert found.law == "power"
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(exponent, abs=2e-3)


def test_a_cost_of_n_log_n_has_an_exponent_slightly_above_one() -> None:
    found = cost_by_size(times(10 * SIZES * np.log2(SIZES)), SIZES)
    assert found.exponent is not None
    assert 1.03 < found.exponent.low < found.exponent.high < 1.2


def test_an_overhead_of_zero_is_held_by_its_interval_and_never_below_zero() -> None:
    found = cost_by_size(times(2.0 * SIZES), SIZES)
    assert found.law == "linear"
    assert 0 <= found.overhead_ns.low <= found.overhead_ns.value
    assert found.overhead_ns.low == 0


def test_a_time_that_does_not_grow_is_all_overhead() -> None:
    found = cost_by_size(times(np.full(SIZES.size, 5000.0)), SIZES)
    assert found.law == "linear"
    assert found.overhead_ns.value == pytest.approx(5000, rel=0.02)
    assert found.slope_ns.low == 0


@pytest.mark.parametrize(
    ("why", "exact"),
    [
        ("a step of a cache", np.where(SIZES > 2**15, 4.0, 1.0) * SIZES),
        ("a special case at one size", np.where(SIZES == 2**14, 0.5, 1.0) * SIZES),
        ("larger is quicker", 1e9 / SIZES),
    ],
)
def test_a_cost_that_no_law_describes_is_absent_with_the_reason(why: str, exact: Floats) -> None:
    with pytest.raises(NoCost):
        cost_by_size(times(exact), SIZES)


@pytest.mark.parametrize(("sizes", "blocks"), [(3, 10), (11, 5)])
def test_too_few_sizes_or_blocks_give_no_cost(sizes: int, blocks: int) -> None:
    with pytest.raises(NoCost):
        cost_by_size(times(2000 + 0.5 * SIZES[:sizes], blocks=blocks), SIZES[:sizes])


def test_four_sizes_tell_a_linear_cost_and_no_power() -> None:
    assert cost_by_size(times(2000 + 0.5 * SIZES[:4]), SIZES[:4]).law == "linear"
    with pytest.raises(NoCost):
        cost_by_size(times(SIZES[:4] ** 2), SIZES[:4])


@pytest.mark.slow
@pytest.mark.parametrize("between", [0.0, 0.03])
@pytest.mark.parametrize(("overhead", "slope", "exponent"), [(2000, 0.5, 1.0), (2000, 0.5, 1.3), (500, 3.0, 0.6)])
def test_intervals_hold_what_was_planted_in_about_nineteen_of_twenty_runs(
    overhead: float, slope: float, exponent: float, between: float
) -> None:
    sizes, runs = SIZES[::2], 60
    held = np.zeros(2)
    for seed in range(runs):
        found = cost_by_size(times(overhead + slope * sizes**exponent, between=between, seed=seed), sizes)
        power = found.exponent
        held += [
            found.overhead_ns.low <= overhead <= found.overhead_ns.high,
            exponent == 1 if power is None else power.low <= exponent <= power.high,
        ]
    assert (held / runs >= 0.85).all(), held / runs  # 95 % less three standard errors of 60 runs


def comparison(ratio: float, seed: int = 0) -> Comparison:
    rng = np.random.default_rng(seed)
    figures = {
        "a": 100 * ratio * np.exp(0.01 * rng.standard_normal(20)),
        "b": 100 * np.exp(0.01 * rng.standard_normal(20)),
    }
    return judge([block_table(figures)])[0]


def test_a_crossing_lies_between_the_last_size_of_one_winner_and_the_first_of_the_other() -> None:
    ratios = [0.5, 0.8, 1.0, 1.0, 1.3, 2.0]
    found = crossings([1, 2, 4, 8, 16, 32], [comparison(each, seed) for seed, each in enumerate(ratios)])
    assert found == (Crossing("a", "b", 2, 16),)


def test_no_crossing_is_claimed_where_only_one_of_them_is_shown_to_be_faster() -> None:
    assert crossings([1, 2, 4], [comparison(0.5), comparison(1.0), comparison(1.0, 3)]) == ()
    assert crossings([1, 2], [comparison(0.5), None]) == ()


def test_curves_that_cross_twice_have_two_crossings_in_whatever_order_the_sizes_come() -> None:
    found = crossings([4, 1, 2], [comparison(0.5), comparison(0.6), comparison(1.7)])
    assert found == (Crossing("a", "b", 1, 2), Crossing("b", "a", 2, 4))


def test_a_comparison_that_names_the_pair_the_other_way_round_counts_the_same() -> None:
    assert crossings([1, 2], [comparison(0.5).reversed(), comparison(2.0)]) == (Crossing("a", "b", 1, 2),)
