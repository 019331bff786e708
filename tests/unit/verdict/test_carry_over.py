"""Who slows whom by running just before: found where it was planted, and not among equals."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
from fairlap.verdict.carry_over import FAMILY_LEVEL, CarryOver, carry_over
from fairlap.verdict.false_positive_rate import false_positives

Costs = Callable[[int, int], float]  # log of the time of the second right after the first, over that after itself
MARGIN = 0.005


def raced(
    seed: int, contestants: int, blocks: int, costs: Costs, noise: float = 0.02, late: float = 0.0
) -> tuple[CarryOver, ...]:
    """Simulate rounds in a drawn order and its reverse; ``late`` slows down those in the drawn order."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(contestants).tolist() for _ in range(blocks)]
    shifts = np.empty((blocks, contestants))
    for block, order in enumerate(orders):
        for direction, sign in ((order, 1.0), (order[::-1], -1.0)):
            for place, own in enumerate(direction):
                before = direction[place - 1] if place else own
                cost = costs(before, own) + noise * rng.standard_t(3) + (late if sign > 0 else 0.0)
                shifts[block, own] = (shifts[block, own] if sign < 0 else 0.0) + sign * cost
    return carry_over([f"c{number}" for number in range(contestants)], orders, shifts, MARGIN)


def none(before: int, own: int) -> float:
    return 0.0


def all_alike(before: int, own: int) -> float:
    return 0.15 if before != own else 0.0


@pytest.mark.parametrize("contestants", [2, 3, 5])
def test_one_that_slows_the_others_down_is_named_with_the_size_of_it(contestants: int) -> None:
    found = raced(1, contestants, 80, lambda before, own: log(1.4) if before == 0 != own else 0.0)
    assert {(each.cause, each.affected) for each in found} == {("c0", f"c{own}") for own in range(1, contestants)}
    assert all(each.ratio == pytest.approx(1.4, rel=0.05) for each in found)
    assert all(each.of_two == (contestants == 2) for each in found)


@pytest.mark.slow_but("2-none-steady", "3-none-first")
@pytest.mark.parametrize("late", [0.0, 0.1], ids=["steady", "first rounds slow"])
@pytest.mark.parametrize("costs", [none, all_alike], ids=["none", "what all cost each other"])
@pytest.mark.parametrize("contestants", [2, 3])
def test_equals_are_accused_in_one_race_of_a_hundred_at_most(contestants: int, costs: Costs, late: float) -> None:
    accused = sum(bool(raced(seed, contestants, 30, costs, late=late)) for seed in range(200))
    assert accused <= false_positives(accused, 200, alpha=FAMILY_LEVEL).allowed


def test_of_two_the_ratio_holds_what_each_costs_the_other_and_the_excess_does_not() -> None:
    def costs(before: int, own: int) -> float:
        return 0.0 if before == own else (0.30 if before == 0 else 0.10)

    [found] = raced(2, 2, 60, costs)
    assert (found.cause, found.affected) == ("c0", "c1")
    assert found.ratio == pytest.approx(exp(0.30), rel=0.02)
    assert found.excess == pytest.approx(exp(0.20), rel=0.02)


def test_an_effect_within_the_margin_is_not_worth_a_warning() -> None:
    assert raced(3, 2, 200, lambda before, own: 0.004 if before == 0 != own else 0.0, noise=0.0005) == ()
    assert raced(3, 2, 200, lambda before, own: 0.008 if before == 0 != own else 0.0, noise=0.0005) != ()


def test_too_few_blocks_accuse_none_whatever_they_show() -> None:
    assert raced(4, 2, 7, lambda before, own: 1.0 if before == 0 != own else 0.0) == ()
    assert raced(4, 2, 8, lambda before, own: 1.0 if before == 0 != own else 0.0) != ()


def test_blocks_with_rounds_in_one_direction_are_left_out() -> None:
    orders = [[0, 1]] * 8 + [[1, 0]] * 8
    shifts = np.array([[0.0, 1.0]] * 8 + [[0.0, -1.0]] * 8)
    [whole] = carry_over(["a", "b"], orders, shifts, MARGIN)
    assert whole.blocks == 16
    shifts[3] = np.nan
    [partial] = carry_over(["a", "b"], orders, shifts, MARGIN)
    assert partial.blocks == 15
    assert carry_over(["a", "b"], orders, np.full((16, 2), np.nan), MARGIN) == ()
