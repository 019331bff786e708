"""Bets about signs: their mean, counted over all signs, is 1, so no level is exceeded however often one looks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fairlap.verdict.exact_tests.sequential import fewest_blocks, is_shown_above, log_bets, lower_end

SIZES = np.array([0.01, 0.3, 0.002, 0.05, 0.05, 0.02, 0.0, 0.08, 0.015, 0.04, 0.03, 0.06])
SIGNS = np.array(list(product((-1.0, 1.0), repeat=SIZES.size)))
LEVELS = [0.05, 0.025, 0.004, 0.0005]


def test_the_mean_of_the_bets_over_all_signs_is_one_after_every_block() -> None:
    assert np.exp(log_bets(SIGNS * SIZES)).mean(axis=0) == pytest.approx(np.ones(SIZES.size))


@pytest.mark.slow_but("0.05")
@pytest.mark.parametrize("level", LEVELS[:3])  # a smaller one takes more signs than there are
def test_among_all_signs_the_share_that_is_ever_shown_is_at_most_the_level(level: float) -> None:
    shown = sum(is_shown_above(row * SIZES, 0.0, level, ended=True) for row in SIGNS)
    assert 0 < shown / len(SIGNS) <= level


def test_a_rule_that_looks_at_the_signed_ranks_after_every_block_exceeds_the_level() -> None:
    """The control: what the bets are for."""
    from fairlap.verdict.exact_tests import signed_rank

    def ever(row: np.ndarray) -> bool:
        return any(signed_rank.p_above(signed_rank.walsh_averages(row[:n])) <= 0.05 for n in range(1, row.size + 1))

    drawn = np.random.default_rng(1).normal(size=(400, 20))
    assert sum(map(ever, drawn)) > 40


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_the_end_of_the_interval_is_where_the_test_changes_its_mind(level: float, ended: bool) -> None:
    differences = 0.03 + np.random.default_rng(2).normal(0, 0.02, 25)
    end = lower_end(differences, level, ended=ended)
    assert np.isfinite(end)
    assert is_shown_above(differences, end - 1e-9, level, ended=ended)
    assert not is_shown_above(differences, end + 1e-9, level, ended=ended)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("level", [*LEVELS, 1e-7])
def test_one_block_fewer_than_the_fewest_shows_nothing_however_clear(level: float, ended: bool) -> None:
    clear, fewest = np.full(60, 5.0), fewest_blocks(level, ended=ended)
    assert is_shown_above(clear[:fewest], 0.0, level, ended=ended)
    assert not is_shown_above(clear[: fewest - 1], 0.0, level, ended=ended)
    assert lower_end(clear[: fewest - 1], level, ended=ended) == -np.inf


def test_one_wild_block_delays_a_clear_gain_and_does_not_hide_it() -> None:
    differences = np.full(30, 0.05)
    differences[2] = -3.0
    assert is_shown_above(differences, 0.0, 1e-4, ended=False)


def test_ties_with_the_threshold_show_nothing() -> None:
    assert not is_shown_above(np.zeros(200), 0.0, 0.05, ended=True)
    assert not is_shown_above(np.array([]), 0.0, 0.05, ended=True)
