"""The referee on trial: the same contestant under two names, through the whole path, as often as asked.

Whatever difference is claimed between the two is false. With a slowdown injected into one, whatever is not found
is missed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.race.counted_blocks import design_of, trouble, work_blocks
from fairlap.race.own_race import own_race_of
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.race.stopping import Ending
from fairlap.request.names import AGAIN, ContestantName
from fairlap.request.race_request import BLOCKS_UNTIL_DECIDED, DEFAULT_BUDGET_S, MOST_EPOCHS_BY_DEFAULT
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.contract import scenario_of
from fairlap.verdict import Comparison, Verdict, judge
from fairlap.verdict.false_positive_rate import false_positives
from fairlap.worker.slowdown import OPTION

_MOST_SEED = 2**31


class NoVerdict(FairlapError):
    """A run of the self-test ended without a comparison; the message gives the reason."""


@dataclass(frozen=True)
class Trial:
    """What every run of the self-test has in common."""

    contestant: ContestantName
    work: Work
    threads: int
    cores: tuple[int, ...]
    blocks: int | None = None  # of a fixed design; otherwise each run goes on until it is decided
    budget_s: float = DEFAULT_BUDGET_S  # of a run until decided
    conditions: Conditions = "controlled"
    seconds: float = 0.4
    slowdown: str = ""  # of the second, such as "2%"; empty for identical ones
    alpha: float = 0.05
    device: str = "cpu"
    to_score: float | None = None  # train until this score is reached, and compare the time to it
    count_evaluation: ClassVar[bool] = False
    scenario_settings: ClassVar[Mapping[str, str]] = {}

    @property
    def pair(self) -> tuple[ContestantName, ContestantName]:
        other = f"{self.contestant.text}{f' (slower by {self.slowdown})' if self.slowdown else AGAIN}"
        options = (*self.contestant.options, (OPTION, self.slowdown)) if self.slowdown else self.contestant.options
        return self.contestant, msgspec.structs.replace(self.contestant, text=other, options=options)


def verdicts_of(trial: Trial, runs: int, seed: int) -> Iterator[Comparison]:
    """One verdict after the other, each from its own blocks, comparing the first contestant with the second."""
    rng = random.Random(seed)
    for _ in range(runs):
        plan = draw_plan(
            trial.pair,
            (trial.work,),
            blocks=BLOCKS_UNTIL_DECIDED if trial.blocks is None else trial.blocks,
            conditions=trial.conditions,
            threads=trial.threads,
            available_cores=trial.cores,
            seed=rng.randrange(_MOST_SEED),
            measuring=Measuring(seconds=trial.seconds),
            device=trial.device,
            data_seeds=scenario_of(trial, trial.work).data_seeds,
            until_decided=trial.blocks is None,
            to_score=trial.to_score,
            most_epochs=MOST_EPOCHS_BY_DEFAULT,
        )
        ending = Ending(plan, budget_s=trial.budget_s if trial.blocks is None else None)
        race = (own_race_of(plan) or Race)(plan, ending=ending)
        race.run()
        [blocks] = work_blocks(plan, race.processes, trial.conditions, on_any_machine=True)
        if blocks.table is None:
            troubles = "; ".join(filter(None, map(trouble, blocks.processes.values())))
            raise NoVerdict(troubles or blocks.why_no_verdict)
        [found] = judge([blocks.table], design=design_of(plan, [blocks.table]))
        yield found if found.a == trial.contestant.text else found.reversed()


@dataclass(frozen=True)
class Tally:
    """How often the first was called faster, slower, or neither."""

    faster: int
    slower: int
    runs: int
    ratios: tuple[float, ...]
    holds: int  # intervals that hold the true ratio
    detectable_effects: tuple[float, ...]

    @property
    def claims(self) -> int:
        return self.faster + self.slower


def tally(verdicts: list[Comparison], true_ratio: float) -> Tally:
    """``true_ratio`` is the first one's time over the second's."""
    return Tally(
        faster=sum(each.verdict is Verdict.FASTER for each in verdicts),
        slower=sum(each.verdict is Verdict.SLOWER for each in verdicts),
        runs=len(verdicts),
        ratios=tuple(each.ratio for each in verdicts),
        holds=sum(each.interval.low <= true_ratio <= each.interval.high for each in verdicts),
        detectable_effects=tuple(each.detectable_effect for each in verdicts),
    )


def share_text(count: int, runs: int) -> str:
    """``3 of 40 runs, 7.5 % [1.6, 20.4]``: with the exact interval of the rate."""
    found = false_positives(count, runs)
    return (
        f"{count} of {runs} runs, {quantity_text.share(count / runs)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    )
