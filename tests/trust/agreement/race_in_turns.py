"""Run a command of fairlap that hands the machine over between turns of its contestants, so that others are timed then.

python -m tests.trust.agreement.race_in_turns OFFERS RETURNS compare mlp --on torch

A line on descriptor OFFERS names whose turn it was, and a line on RETURNS gives the machine back. Meanwhile the
contestant is frozen, as it is in the turns of other contestants.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Literal

from fairlap.__main__ import main
from fairlap.race import race
from fairlap.race.processes.one_process import ProcessRun

ROUNDS = 30  # of turns as long as usual, as in later blocks of a race where more than ten are worthwhile
TURNS_ON_EACH_SIDE = 4  # of a single turn
Stage = Callable[[ProcessRun], None]
TurnOf = Literal["preparation", "calls", "steps"]


@dataclass(frozen=True)
class Offer:
    """Before a turn of calls, and after each step that follows them: an epoch, or a trial with its rate ``given``."""

    of: TurnOf
    contestant: str
    model: str
    cores: Sequence[int]
    given: Sequence[float] = ()


class Handover:
    def __init__(self, offers: IO[str], returns: IO[str]) -> None:
        self._offers, self._returns = offers, returns

    def prepared(self, stage: Stage) -> Stage:
        def and_started(run: ProcessRun) -> None:
            stage(run)
            self._hand_over(run, "preparation")

        return and_started

    def turn(self, stage: Stage) -> Stage:
        def between(run: ProcessRun) -> None:
            self._hand_over(run, "calls")
            stage(run)

        return between

    def single_turn(self, stage: Stage) -> Stage:
        """Half of the loop's turns before it, half after: a machine that becomes faster does so for both alike."""

        def between(run: ProcessRun) -> None:
            for _ in range(TURNS_ON_EACH_SIDE):
                self._hand_over(run, "calls")
            stage(run)
            for _ in range(TURNS_ON_EACH_SIDE):
                self._hand_over(run, "calls")

        return between

    def step(self, stage: Stage) -> Stage:
        def and_after(run: ProcessRun) -> None:
            stage(run)
            trial = None if run.result.load is None else run.result.load.trials[-1]
            if trial is None:
                self._hand_over(run, "steps")
            elif trial.kind == "curve" and trial.rate_per_s is not None:
                self._hand_over(run, "steps", [trial.rate_per_s])

        return and_after

    def _hand_over(self, run: ProcessRun, of: TurnOf, given: Sequence[float] = ()) -> None:
        if run.over:
            return
        freezes = not run.result.in_turn_because  # ranks are not frozen; what is alone waits for its next request
        if freezes:
            run.freeze()
        model = run.plan.work_with(run.result.work_id).model
        print(json.dumps(asdict(Offer(of, run.result.contestant, model, run.result.cores, given))), file=self._offers)
        self._offers.flush()
        self._returns.readline()
        if freezes:
            run.thaw()


def hand_over_between_turns(offers: IO[str], returns: IO[str]) -> None:
    handover = Handover(offers, returns)
    race.rounds_of = lambda plan, block, processes: ROUNDS  # type: ignore[attr-defined]
    changed: dict[str, Callable[[Stage], Stage]] = {
        "check_answers": handover.prepared,
        "take_a_turn": handover.turn,
        "measure_in_one_turn": handover.single_turn,
        "step_after_turns": handover.step,
    }
    for name, change in changed.items():
        setattr(ProcessRun, name, change(getattr(ProcessRun, name)))


if __name__ == "__main__":
    _, offers, returns, *command = sys.argv
    hand_over_between_turns(os.fdopen(int(offers), "w"), os.fdopen(int(returns)))
    sys.argv = ["fairlap", *command]
    main()
