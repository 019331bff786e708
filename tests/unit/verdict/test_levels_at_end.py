"""Another quantity of a run is judged at the level of its last look, so looking early costs that quantity too."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import BlockTable, Verdict, block_table, decided, design_so_far, judge, levels_at_end

DIFFERENT = {"a": np.linspace(1.0, 1.01, 6), "b": np.linspace(1.2, 1.22, 6)}


def test_with_a_fixed_number_of_blocks_it_is_the_whole_level_of_the_work() -> None:
    table = block_table(DIFFERENT)
    assert levels_at_end([table]) == (0.05,)
    assert levels_at_end([table, table], alpha=0.04) == (0.02, 0.02)
    assert levels_at_end([]) == ()


def test_a_race_that_was_decided_after_six_blocks_has_the_level_of_its_first_look() -> None:
    table = block_table(DIFFERENT)
    design = design_so_far([table], until_decided=True)
    assert not design.ended_blind
    assert levels_at_end([table], design=design) == pytest.approx((0.032,))


def test_a_race_whose_budget_ended_it_has_what_its_looks_left() -> None:
    rng = np.random.default_rng(3)
    table = block_table({name: np.exp(rng.normal(0, 0.2, 24)) for name in "ab"})
    design = design_so_far([table], until_decided=True)
    assert design.ended_blind
    [level] = levels_at_end([table], design=design)
    assert 0 < level < 0.05


def raced(rng: np.random.Generator) -> tuple[BlockTable, float]:
    """Race equals until they are decided, for 20 blocks at most; the level at which it ended."""
    whole = block_table({name: np.exp(rng.normal(0, 0.03, 20)) for name in "ab"})
    for blocks in (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20):
        table = whole.first(blocks)
        running = design_so_far([table], until_decided=True)
        if not running.ended_blind or blocks == 20:
            return table, levels_at_end([table], design=running)[0]
    raise AssertionError


@pytest.mark.slow
def test_a_quantity_that_follows_the_time_is_called_different_in_at_most_one_race_of_twenty() -> None:
    """CPU time is often the time once more: a race that ended since its times differed has chosen its blocks too."""
    rng = np.random.default_rng(5)
    races = 600
    wrong = 0
    for _ in range(races):
        table, level = raced(rng)
        [found] = judge([table], alpha=level)
        wrong += found.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert wrong <= races * 0.05 + 3 * (races * 0.05 * 0.95) ** 0.5
    assert decided([block_table(DIFFERENT)], design=design_so_far([block_table(DIFFERENT)], until_decided=True))
