"""The rule of every gate, and the race that goes on until it is decided."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fairlap.verdict import (
    THROUGHPUT,
    BadOption,
    BlockTable,
    Comparison,
    Design,
    Gate,
    Slowdown,
    Verdict,
    block_table,
    decided,
    design_so_far,
    judge,
    slowdown,
    slowdown_of,
)
from fairlap.verdict.blocks import Floats
from hypothesis import given, settings
from hypothesis import strategies as st

BOUND = 0.05
GATE = Gate("base", BOUND)
RUNNING = Design(until_decided=True, ended_blind=False, gate=GATE)
MOST_BLOCKS = 40


def blocks(slower_by: float, spread: float, seed: int, count: int = MOST_BLOCKS) -> Floats:
    """Log figures of base and change, whose ratios spread by so much."""
    noise = np.random.default_rng(seed).normal(0, spread / np.sqrt(2), (count, 2))
    figures: Floats = noise + np.array([0.0, np.log1p(slower_by)])
    return figures


def table(figures: Floats, **options: object) -> BlockTable:
    return block_table({"base": np.exp(figures[:, 0]), "change": np.exp(figures[:, 1])}, **options)  # type: ignore[arg-type]


def raced(figures: Floats, gate: Gate | None = GATE) -> Comparison:
    """As a race does it: after each block it asks whether all is decided."""
    every = table(figures)
    running = replace(RUNNING, gate=gate)
    ended = next((n for n in range(2, every.blocks) if decided([every.first(n)], design=running)), every.blocks)
    shown = every.first(ended)
    [found] = judge([shown], design=design_so_far([shown], until_decided=True, gate=gate))
    return found.reversed()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.051, 1.2, Slowdown.EXCEEDED),
        (0.9, 1.049, Slowdown.WITHIN),
        (1.04, 1.06, Slowdown.UNDECIDED),
        (1.05, 1.2, Slowdown.UNDECIDED),
        (0.9, 1.05, Slowdown.UNDECIDED),
        (0.0, np.inf, Slowdown.UNDECIDED),
        (1.016, 1.046, Slowdown.WITHIN),
    ],
)
def test_an_interval_beside_the_bound_decides_and_one_around_it_does_not(
    low: float, high: float, expected: Slowdown
) -> None:
    assert slowdown(low, high, BOUND) is expected


def test_of_a_throughput_less_is_slower() -> None:
    rates = table(blocks(-0.3, 0.01, 0, 12), metric=THROUGHPUT)
    for design in (Design(), Design(until_decided=True, gate=GATE)):
        [found] = judge([rates], design=design)
        assert slowdown_of(found.reversed(), BOUND) is Slowdown.EXCEEDED
        assert slowdown_of(found, BOUND) is Slowdown.WITHIN
    assert decided([rates], design=RUNNING)


@pytest.mark.parametrize("bound", [0.0, math.inf, -0.1])
def test_a_bound_is_above_0_and_finite(bound: float) -> None:
    with pytest.raises(BadOption):
        Gate("base", bound)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.03, 0.05, 0.1]), st.sampled_from([0.01, 0.04]))
@settings(max_examples=60, deadline=None)
def test_the_verdict_the_gate_and_the_interval_are_of_one_set_of_blocks(
    seed: int, slower_by: float, spread: float
) -> None:
    found = raced(blocks(slower_by, spread, seed))
    within, exceeded = found.interval.high < 1 + BOUND, found.interval.low > 1 + BOUND
    assert slowdown_of(found, BOUND) is (
        Slowdown.WITHIN if within else Slowdown.EXCEEDED if exceeded else Slowdown.UNDECIDED
    )
    if found.blocks < MOST_BLOCKS:
        assert within or exceeded
    assert (found.verdict is Verdict.SLOWER) == (found.interval.low > 1)
    assert (found.verdict is Verdict.FASTER) == (found.interval.high < 1)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05, 0.2]), st.integers(0, 2**MOST_BLOCKS - 1))
@settings(max_examples=60, deadline=None)
def test_the_moment_of_a_look_does_not_know_on_which_side_of_the_bound_a_block_is(
    seed: int, slower_by: float, swapped: int
) -> None:
    """Mirrored at the bound in any of its blocks, a race is looked at after the same blocks."""
    from fairlap.verdict import looks

    figures = blocks(slower_by, 0.03, seed) + np.array([np.log1p(BOUND), 0.0])
    mirrored = figures.copy()
    places = [block for block in range(MOST_BLOCKS) if swapped >> block & 1]
    mirrored[places] = mirrored[places][:, ::-1]
    design = replace(RUNNING, ended_blind=True)
    assert looks(figures, alpha=0.05, margin=0.02, design=design) == looks(
        mirrored, alpha=0.05, margin=0.02, design=design
    )


def test_a_clear_change_is_decided_after_six_blocks_and_one_at_the_bound_uses_them_all() -> None:
    for slower_by, shown in ((0.0, Slowdown.WITHIN), (-0.3, Slowdown.WITHIN), (0.2, Slowdown.EXCEEDED)):
        found = raced(blocks(slower_by, 0.005, 1))
        assert (found.blocks, slowdown_of(found, BOUND)) == (6, shown)
    assert raced(blocks(BOUND, 0.01, 3)).blocks == MOST_BLOCKS


def test_without_its_baseline_a_gate_asks_nothing() -> None:
    figures = blocks(0.0, 0.02, 0, 12)
    others = table(figures)
    assert judge([others], design=Design(until_decided=True, gate=Gate("gone", BOUND))) == judge(
        [others], design=Design(until_decided=True)
    )


def test_a_gate_with_several_contestants_is_decided_where_each_is() -> None:
    rng = np.random.default_rng(0)
    logs = rng.normal(0, 0.004, (8, 3)) + np.array([0.0, 0.0, 0.3])
    three = block_table({name: np.exp(logs[:, i]) for i, name in enumerate(("base", "same", "slow"))})
    assert decided([three], design=RUNNING)
    found = {(each.a, each.b): each.reversed() for each in judge([three], design=RUNNING)}
    assert slowdown_of(found["base", "same"], BOUND) is Slowdown.WITHIN
    assert slowdown_of(found["base", "slow"], BOUND) is Slowdown.EXCEEDED


@pytest.mark.slow
@pytest.mark.parametrize("races", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_at_the_bound_a_race_that_ends_early_errs_as_rarely_as_stated(races: int) -> None:
    """2.5 % to either side; three standard errors more are allowed. `make trust` runs thousands."""
    allowed = 0.025 + 3 * np.sqrt(0.025 * 0.975 / races)
    found = [slowdown_of(raced(blocks(BOUND, 0.04, seed)), BOUND) for seed in range(races)]
    assert found.count(Slowdown.EXCEEDED) / races <= allowed
    assert found.count(Slowdown.WITHIN) / races <= allowed
