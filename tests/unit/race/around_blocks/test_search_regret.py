"""The bound on how much slower chosen settings may be than the best is wrong at most as often as it says."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.race.around_blocks.best_settings import WORTH_IT
from fairlap.race.around_blocks.search_regret import LogTimes, further_blocks, log_times_of, regret_of
from fairlap.race.around_blocks.settings_search import Settings
from fairlap.request.work import Work
from runs_for_rows import a_process

A: Settings = (("brake", "none"),)
B: Settings = (("other", "odd"),)
Noise = Callable[[np.random.Generator, tuple[int, int]], npt.NDArray[np.float64]]
SEARCHES = 500

NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(0, 0.02, shape),
    "heavy tails": lambda rng, shape: 0.01 * rng.standard_t(2, shape),
    "two modes": lambda rng, shape: rng.choice([-0.03, 0.03], shape) + rng.normal(0, 0.002, shape),
    "a block is slow for all": lambda rng, shape: rng.normal(0, 0.01, shape) + rng.normal(0, 0.3, (shape[0], 1)),
}


def wrong_share(noise: Noise, blocks: int, true: dict[Settings, float]) -> tuple[float, float]:
    """Of simulated last rounds that choose as the search does, and what the bound says of it."""
    rng, wrong, level = np.random.default_rng(blocks), 0, 0.0
    for _ in range(SEARCHES):
        noisy = np.array(list(true.values())) + noise(rng, (blocks, len(true)))
        logs = dict(zip(true, noisy.T.tolist(), strict=True))
        ratios = {each: math.exp(np.mean(logs[each]) - np.mean(logs[()])) for each in true if each}
        best = min(ratios, key=ratios.__getitem__)
        found = regret_of(best if ratios[best] < WORTH_IT else (), logs, 9)
        assert found is not None
        assert found.at_most is not None
        level = found.level
        chosen = best if ratios[best] < WORTH_IT else ()
        wrong += math.expm1(true[chosen] - min(true.values())) > found.at_most
    return wrong / SEARCHES, level


@pytest.mark.slow_but("tiny")
@pytest.mark.parametrize("blocks", [3, 4])
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(
    "true",
    [{(): 0.0, A: -0.03, B: -0.02}, {(): 0.0, A: -0.011, B: 0.011}, {(): 0.0, A: 0.03}],
    ids=["gains", "tiny", "one"],
)
def test_the_bound_is_wrong_at_most_as_often_as_it_says(blocks: int, name: str, true: dict[Settings, float]) -> None:
    share, level = wrong_share(NOISES[name], blocks, true)
    assert level == (len(true) - 1) / 2**blocks
    assert share <= level + 3 * math.sqrt(level * (1 - level) / SEARCHES)


def test_the_bound_is_the_largest_ratio_of_any_block_and_counts_what_was_dropped() -> None:
    logs = {(): [0.0, 0.0, 0.0], A: [-0.1, -0.1, -0.1], B: [-0.08, -0.12, -0.09]}
    found = regret_of(A, logs, 9)
    assert found is not None
    assert found.at_most == pytest.approx(math.expm1(0.02))
    assert (found.bounded, found.unbounded, found.blocks, found.level) == (2, 6, 3, 0.25)
    best = regret_of(A, {(): [0.0] * 5, A: [-0.1] * 5}, 2)
    assert best is not None
    assert (best.at_most, best.unbounded, best.level) == (0.0, 0, 1 / 32)
    assert regret_of((), {}, 1) is None


def test_without_enough_blocks_nothing_is_bounded_and_all_others_are_counted() -> None:
    few: list[LogTimes] = [{}, {(): [0.0]}, {(): [0.0], A: [-0.1]}, {(): [0.0] * 2, A: [-0.1] * 2, B: [0.0] * 2}]
    for logs in few:
        found = regret_of((), logs, 5)
        assert found is not None
        assert (found.at_most, found.bounded, found.unbounded, found.level) == (None, 0, 4, 1.0)


def test_further_blocks_take_at_most_a_tenth_of_the_search_and_no_more_than_the_bound_can_use() -> None:
    for seconds in (0.0, 10.0, 70.0, 200.0, 1e4):
        added = further_blocks(seconds, 7.0, 3, 2)
        assert added * 7.0 <= 0.1 * (seconds + 3 * 7.0)
    assert further_blocks(70.0, 7.0, 3, 2) == 1
    assert further_blocks(1e4, 7.0, 3, 2) == 3
    assert 2 / 2 ** (3 + 3) <= 0.05
    assert further_blocks(1e4, 7.0, 3, 0) == 0


def test_a_block_counts_once_over_all_works() -> None:
    works = (Work("mlp", 1), Work("mlp", 2))
    times_ns = {(): ([1e6, 1e6], [3e6, 3e6]), A: ([2e6, 1e6], [3e6, 6e6])}
    processes = {
        settings: [
            a_process(2 * block + place, str(settings), own[place][block], work)
            for block in range(2)
            for place, work in enumerate(works)
        ]
        for settings, own in times_ns.items()
    }
    for each in (each for own in processes.values() for each in own):
        each.rounds_ns = []
    logs = log_times_of(processes, 2)
    ratios = np.subtract(logs[A], logs[()])
    measured = [
        [math.log(processes[A][2 * block + place].headline_ns / processes[()][2 * block + place].headline_ns)
         for place in range(2)]
        for block in range(2)
    ]  # fmt: skip
    np.testing.assert_allclose(ratios, np.mean(measured, axis=1))
