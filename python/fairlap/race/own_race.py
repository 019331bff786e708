"""Races whose contestants are not processes of fairlap's, such as servers that run before and after them.

A scenario names its own in ``Scenario.own_race``. Plan, order, stopping, store and resume are those of any race.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

from fairlap.interrupts import signals_wait
from fairlap.launch.worker_process import Samples
from fairlap.plugins import class_at
from fairlap.race.around_blocks.after_blocks import Keep
from fairlap.race.left_out import contestants_of
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.planning.plan_file import require_complete
from fairlap.race.progress import Messages, Progress
from fairlap.race.stopping import Ending
from fairlap.scenarios.process_result import ProcessResult

Shown = tuple[ProcessResult, Samples]
"""What a contestant showed in a block, and its raw samples by quantity."""


class OwnRace(ABC):
    """One run of a plan, as ``Race`` is. A block that is interrupted leaves nothing."""

    data_lost: ClassVar[str] = ""
    doing: ClassVar[str] = ""  # after the blocks

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        ending: Ending | None = None,
        keep: Keep = lambda _process, _samples: None,
        resumed: Sequence[ProcessResult] = (),
    ) -> None:
        require_complete(plan)
        self.plan = plan
        self.processes = list(resumed)
        self.ended_early = ""
        self.progress = progress or Messages()
        self._ending, self._keep = ending, keep
        self._began_s = time.monotonic()
        self._whole_s = self._turns_s = 0.0

    @abstractmethod
    def prepared(self) -> AbstractContextManager[None]:
        """Hold what blocks need for as long as they run."""

    @abstractmethod
    def run_block(self, block: Block, contestants: Sequence[str]) -> Sequence[Shown]:
        """Give each of these contestants its turn, in their order."""

    def why_over(self) -> str:
        """Why no further block can show anything; empty to go on."""
        return ""

    def out_of_time(self) -> bool:
        """Whether the budget is spent, so that nothing that takes long is begun in the first block."""
        return self._ending is not None and self._ending.ends_first_block()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def run(self, after_block: Callable[[], object] = lambda: None) -> None:
        self._began_s = time.monotonic()
        try:
            with self.prepared():
                self._run_blocks(after_block)
        finally:
            self._whole_s = self.elapsed_s

    def _run_blocks(self, after_block: Callable[[], object]) -> None:
        ran = {process.block for process in self.processes}
        for number, block in enumerate(self.plan.blocks, start=1):
            if block.number in ran:
                continue
            shown = self.run_block(block, contestants_of(self.plan, block, self.processes))
            with signals_wait():  # a block is kept whole
                for result, samples in shown:
                    self.processes.append(result)
                    self._keep(result, samples)
                    self._turns_s += result.elapsed_s
                    self.progress.ended(len(self.processes), result)
            self.progress.block_over(self.processes)
            after_block()
            if number < len(self.plan.blocks):
                kept = sum(each.number in ran for each in self.plan.blocks[:number])
                self.ended_early = self.why_over() or self._why_ended(number, kept)
            if self.ended_early:
                return

    def _why_ended(self, blocks: int, kept: int) -> str:
        if self._ending is None:
            return ""
        return self._ending.reason(self.plan.blocks[:blocks], self.processes, kept)

    def shares(self) -> Mapping[str, float]:
        """Where the wall time went: into the contestants' turns, and into fairlap."""
        whole_s = self._whole_s or self.elapsed_s
        return {"whole": whole_s, "frameworks": self._turns_s, "fairlap": whole_s - self._turns_s}


def own_race_of(plan: Plan) -> type[OwnRace] | None:
    """Find the one of the plan's scenario; None where its contestants are processes of fairlap's."""
    place = next((each.own_race for each in plan.scenarios if each.own_race), "")
    return class_at(place, OwnRace, "the race of a scenario") if place else None  # type: ignore[type-abstract]
