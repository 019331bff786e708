"""Plant a step in histories, race them with the noise of real races, and count how often it is named.

python -m tests.trust.planted_commits --histories 100

A block's noise is what pairs of identical processes showed: 1.3 % for a small model after forty rounds, 2.5 % after
ten, 3.9 % for a convolutional net; one block in twenty is three times as noisy. Trees of the same code differ by
TREE_SD, and every race has the tree of the good end on its other side. Plain bisection halves at each commit after one
race, by whether it is nearer to the bad level than to the good one.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fairlap.bisection.posterior import Floats
from fairlap.bisection.readings import Reading, centre_of
from fairlap.bisection.search import Ended, Search
from fairlap.verdict import ONE_SIDE, decision_after, fewest_blocks

TREE_SD = 0.002
COMMITS = 64
STEP = 0.03
_BLOCK_SDS = (0.013, 0.025, 0.039)
_EPISODES, _EPISODE = 0.05, 3.0  # of blocks, and how many times as noisy
_MOST_BLOCKS_OF_ENDS = 60
_NEEDED = 0.95  # of the histories of the first case


@dataclass(frozen=True)
class Case:
    name: str
    step: float = STEP
    sure: float = 0.95
    unfit_share: float = 0.0  # of commits, in runs of two
    speed_up: float = 0.0  # planted at another commit
    smaller_step: float = 0.0  # planted before the step
    block_sds: tuple[float, ...] = _BLOCK_SDS
    tree_sd: float = TREE_SD


CASES = (
    Case("a step of 3 %"),
    Case("a step of 3 %, --sure 0.99", sure=0.99),
    Case("a step of 3 %, blocks of 3.9 %", block_sds=(0.039,)),
    Case("a step of 3 %, a fifth does not build", unfit_share=0.2),
    Case("a step of 3 %, a speed-up of 1.5 % elsewhere", speed_up=0.015),
    Case("a step of 5 %, a speed-up of 2 % elsewhere", step=0.05, speed_up=0.02),
    Case("a step of 3 % after one of 2 %", smaller_step=0.02),
    Case("a step of 30 %", step=0.3),
    Case("a step of 3 %, trees differ by 0.6 %", tree_sd=0.006),
)


@dataclass
class PlantedHistory:
    """Commits 1 to ``last``; the good end is 0."""

    levels: Floats
    trees: Floats
    unfit: frozenset[int]
    step_at: int
    block_sd: float
    random: np.random.Generator
    races: int = 0
    blocks: int = 0

    def race_of_ends(self) -> Reading:
        """Race until the ends are told apart, as the command does."""
        last = self.levels.size - 1
        log_ratios = self.race(last, fewest_blocks(ONE_SIDE, ended=True)).log_ratios
        while len(log_ratios) < _MOST_BLOCKS_OF_ENDS and not self._told_apart(log_ratios):
            log_ratios += self.race(last, 1).log_ratios
        self.races = 1
        return Reading(last, log_ratios)

    @staticmethod
    def _told_apart(log_ratios: Sequence[float]) -> bool:
        return decision_after(np.array(log_ratios), 0.0, ONE_SIDE, ended=False) != "undecided"

    def race(self, position: int, blocks: int) -> Reading:
        self.races += 1
        self.blocks += blocks
        noisier = np.where(self.random.random(blocks) < _EPISODES, _EPISODE, 1.0)
        noise = self.random.normal(0, self.block_sd, blocks) * noisier
        level = self.levels[position] + self.trees[position] - self.trees[0]
        return Reading(position, tuple((level + noise).tolist()))


def planted(case: Case, seed: int, last: int = COMMITS) -> PlantedHistory:
    random = np.random.default_rng(seed)
    step_at = int(random.integers(1, last + 1))
    levels = np.zeros(last + 1)
    levels[step_at:] += math.log1p(case.step)
    if case.speed_up:
        levels[int(random.choice([each for each in range(1, last + 1) if each != step_at])) :] -= case.speed_up
    if case.smaller_step and step_at > 1:
        levels[int(random.integers(1, step_at)) :] += case.smaller_step
    broken: set[int] = set()
    while len(broken) < case.unfit_share * last:
        first = int(random.integers(1, last))
        broken |= {each for each in (first, first + 1) if each not in (last, step_at, step_at - 1)}
    block_sd = float(random.choice(case.block_sds))
    return PlantedHistory(
        levels, random.normal(0, case.tree_sd, last + 1), frozenset(broken), step_at, block_sd, random
    )


@dataclass(frozen=True)
class Outcome:
    named: bool  # the right commit
    claimed: bool  # any one commit
    probability: float
    races: int
    blocks: int


def searched(history: PlantedHistory, sure: float, last: int = COMMITS) -> Outcome:
    search, readings = Search(last, sure), [history.race_of_ends()]
    unfit: set[int] = set()
    while True:
        step = search.next(readings, unfit)
        if isinstance(step, Ended):
            claimed = step.reason == "sure" and len(step.suspects) == 1
            named = claimed and step.suspects[0] == history.step_at
            return Outcome(named, claimed, step.probability, history.races, history.blocks)
        if step.position in history.unfit:
            unfit.add(step.position)
        else:
            readings.append(history.race(step.position, step.blocks))


def halved(history: PlantedHistory, blocks: int, last: int = COMMITS) -> Outcome:
    bad = centre_of(history.race_of_ends().log_ratios)
    low, high = 0, last
    while high - low > 1:
        between = [each for each in range(low + 1, high) if each not in history.unfit]
        if not between:
            break
        middle = min(between, key=lambda each: abs(each - (low + high) / 2))
        is_bad = centre_of(history.race(middle, blocks).log_ratios) > bad / 2
        low, high = (low, middle) if is_bad else (middle, high)
    return Outcome(high == history.step_at and high - low == 1, high - low == 1, 1.0, history.races, history.blocks)


def line(name: str, outcomes: Sequence[Outcome]) -> str:
    named, claimed = (sum(getattr(each, what) for each in outcomes) for what in ("named", "claimed"))
    races, blocks = (float(np.median([getattr(each, what) for each in outcomes])) for what in ("races", "blocks"))
    stated = np.mean([each.probability for each in outcomes if each.claimed]) if claimed else math.nan
    stated_text = f", stated {stated:6.1%}" if stated < 1 else ""
    return (
        f"{name:58} named {named:3} of {len(outcomes)}, wrong {claimed - named:3}{stated_text}, "
        f"races {races:4.0f}, blocks {blocks:5.0f}"
    )


def calibration(outcomes: Sequence[Outcome]) -> list[str]:
    """Stated probability against hit rate, by bands of what was stated."""
    bands = [(0.90, 0.96), (0.96, 0.98), (0.98, 0.99), (0.99, 1.01)]
    lines = []
    for low, high in bands:
        own = [each for each in outcomes if each.claimed and low <= each.probability < high]
        if own:
            stated, hit = np.mean([each.probability for each in own]), np.mean([each.named for each in own])
            lines.append(f"  stated {stated:6.1%}: right in {hit:6.1%} of {len(own)}")
    return lines


def searches(case: Case, seeds: range) -> list[Outcome]:
    return [searched(planted(case, seed), case.sure) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=100)
    seeds = range(parser.parse_args().histories)
    every: list[Outcome] = []
    for case in CASES:
        found = searches(case, seeds)
        every += found
        print(line(case.name, found), flush=True)
        for blocks in (12, 24):
            plain = [halved(planted(case, seed), blocks) for seed in seeds]
            print(line(f"  plain bisection, {blocks} blocks a race", plain), flush=True)
    print("calibration, all cases", *calibration(every), sep="\n")
    named = sum(each.named for each in every[: len(seeds)])
    if named < _NEEDED * len(seeds):
        sys.exit(f"{named} of {len(seeds)} named in the first case; at least {_NEEDED:.0%} are promised")


if __name__ == "__main__":
    main()
