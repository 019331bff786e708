"""How many rounds a process is worth follows from spreads and costs, and never from who leads."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from fairlap.verdict import SEGMENT, RacedBlock, worthwhile_rounds
from fairlap.verdict.when_to_stop.worthwhile_rounds import components, medians_of_segments

MARGIN = 0.02


def raced(
    *,
    processes: float,
    rounds: float,
    effects: tuple[float, ...] = (0.0, 0.0),
    blocks: int = 12,
    processes_s: float = 2.5,
    round_s: float = 0.15,
    count: int = 20,
    seed: int = 1,
) -> list[RacedBlock]:
    """Draw normal noise with these standard deviations between processes and between rounds."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(blocks):
        own = np.array(effects)[:, None] + processes * rng.normal(size=(len(effects), 1))
        noise = rounds * rng.normal(size=(len(effects), count)) + 0.1 * rng.normal(size=count)
        found.append(RacedBlock(own + noise, processes_s, round_s))
    return found


def chosen(blocks: list[RacedBlock], *, usual: int = 10, until_decided: bool = True) -> int:
    return worthwhile_rounds(blocks, usual=usual, margin=MARGIN, until_decided=until_decided)


def test_the_first_blocks_have_as_many_rounds_as_usual() -> None:
    blocks = raced(processes=0.001, rounds=0.05)
    assert chosen(blocks[:2]) == 10
    assert chosen(blocks) != 10


def test_noisy_rounds_of_like_processes_are_worth_many_and_steady_ones_of_unlike_processes_few() -> None:
    small = chosen(raced(processes=0.005, rounds=0.06))
    large = chosen(raced(processes=0.06, rounds=0.01))
    assert small >= 30
    assert large == SEGMENT


@pytest.mark.parametrize(("round_s", "rounds"), [(0.13, 10), (0.15, 5), (0.08, 10), (0.01, 10)])
def test_the_rounds_of_a_block_last_longer_than_an_episode_of_disturbance(round_s: float, rounds: int) -> None:
    """But for turns that were asked to be shorter than usual: then as many as usual."""
    assert chosen(raced(processes=0.06, rounds=0.01, round_s=round_s)) == rounds


def test_costly_processes_are_worth_more_rounds_and_costly_rounds_fewer() -> None:
    def of_costs(processes_s: float, round_s: float) -> int:
        blocks = raced(processes=0.02, rounds=0.06, blocks=100, processes_s=processes_s, round_s=round_s)
        return chosen(blocks, until_decided=False)

    usual = of_costs(10.0, 0.3)
    assert of_costs(40.0, 0.3) > usual
    assert of_costs(10.0, 2.0) < usual


def test_the_number_is_that_of_kalibera_and_jones_where_a_fixed_number_of_blocks_is_raced() -> None:
    blocks = raced(processes=0.02, rounds=0.1, blocks=300, processes_s=4.0, count=40)
    found = components(blocks, MARGIN)
    assert found is not None
    differences = [np.diff(medians_of_segments(each.log_times), axis=0)[0] for each in blocks]
    between_segments = float(np.mean([np.var(each, ddof=1) / 2 for each in differences]))
    assert between_segments == pytest.approx(0.287 * 0.1**2, rel=0.1)  # of the median of five
    assert found.between_segments == pytest.approx(between_segments, rel=0.1)
    assert found.between_processes == pytest.approx(0.02**2, rel=0.3)
    best = np.sqrt(4.0 / (SEGMENT * 0.15) * found.between_segments / found.between_processes)
    assert abs(chosen(blocks, until_decided=False) / SEGMENT - best) <= 1


def test_contestants_far_apart_are_not_measured_more_precisely_than_six_blocks_need() -> None:
    equal = raced(processes=0.005, rounds=0.06)
    apart = raced(processes=0.005, rounds=0.06, effects=(0.0, 1.0))
    assert chosen(apart) == SEGMENT < chosen(equal)


def test_a_fixed_number_of_blocks_has_at_least_the_usual_rounds() -> None:
    assert chosen(raced(processes=0.06, rounds=0.01), until_decided=False) == 10


@pytest.mark.slow_but("2")
@pytest.mark.parametrize("contestants", [2, 4])
def test_exchanging_contestants_within_any_block_changes_nothing(contestants: int) -> None:
    rng = np.random.default_rng(3)
    blocks = raced(processes=0.02, rounds=0.05, effects=tuple(0.03 * np.arange(contestants)), blocks=8)
    expected = components(blocks, MARGIN)
    assert expected is not None
    for _ in range(20):
        exchanged = [
            RacedBlock(each.log_times[rng.permutation(contestants)], each.processes_s, each.round_s) for each in blocks
        ]
        found = components(exchanged, MARGIN)
        assert found is not None
        assert astuple(found) == pytest.approx(astuple(expected))
        assert chosen(exchanged) == chosen(blocks)


def test_a_burst_in_one_round_changes_nothing() -> None:
    blocks = raced(processes=0.02, rounds=0.02)
    before = chosen(blocks)
    for block in blocks:
        block.log_times[0, 3] += 2.0
    assert chosen(blocks) <= before + SEGMENT


def test_blocks_of_one_segment_say_nothing_of_what_differs_between_segments() -> None:
    assert components(raced(processes=0.02, rounds=0.02, count=4), MARGIN) is None
    assert chosen(raced(processes=0.02, rounds=0.02, count=4), usual=4) == 4


def test_equal_figures_in_every_block_are_no_error() -> None:
    blocks = [RacedBlock(np.zeros((2, 10)), 1.0, 0.1) for _ in range(6)]
    assert SEGMENT <= chosen(blocks) <= 12 * SEGMENT
