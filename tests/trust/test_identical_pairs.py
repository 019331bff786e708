"""The interval of the rate at which identical contestants are called different."""

import pytest
from fairlap.verdict.false_positive_rate import false_positives

from .identical_pairs import SHARING, RacedPairs, rate_of


def race(claims: int, contestants: int) -> RacedPairs:
    return RacedPairs("latency", "torch", 1, contestants, 6, claims, 0, 1.0)


def test_races_of_two_have_the_exact_interval_of_independent_pairs() -> None:
    rate = rate_of([race(1, 2)] * 3 + [race(0, 2)] * 57)
    exact = false_positives(3, 60)
    assert rate.claims == 3
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high), rel=0.1)


def test_claims_that_come_in_one_race_alone_widen_the_interval() -> None:
    spread, together = [race(1, 6)] * 4, [race(4, 6), *[race(0, 6)] * 3]
    assert rate_of(spread).share == rate_of(together).share
    assert rate_of(spread).worth == int(60 / (1 + 8 * SHARING))
    assert rate_of(together).worth < rate_of(spread).worth
    assert rate_of(together).high > rate_of(spread).high


def test_pairs_that_share_blocks_are_worth_fewer_even_without_a_claim() -> None:
    rate = rate_of([race(0, 12)])
    assert (rate.pairs, rate.worth, rate.low) == (66, 16, 0.0)
    assert rate.high > 0.2


def test_a_rule_that_errs_in_a_third_of_pairs_fails() -> None:
    assert not rate_of([race(1, 2)] * 20 + [race(0, 2)] * 40).passed
    assert rate_of([race(1, 2)] * 2 + [race(0, 2)] * 58).passed
