"""What a scenario asks of a process once its calls have been timed: epochs until a score, trials of load.

It is asked step by step, and all processes of a block take their steps in turns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.meters.disturbances import StepsMeter
from fairlap.plugins import class_at
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.scenarios.asking import Answer, Ask
from fairlap.scenarios.contract import scenario_of
from fairlap.scenarios.process_result import ProcessResult


@dataclass(frozen=True)
class OneProcess:
    worker: WorkerProcess
    result: ProcessResult
    bench: Bench
    calls_ns: np.ndarray  # of its last turn
    meter: StepsMeter

    def ask(self, request: Ask[Answer], *, within_s: float) -> Answer:
        """Ask its worker for what is judged, and meter what the machine does meanwhile."""
        with self.meter.turn():
            return self.worker.ask(request, within_s=within_s)


class AfterTurns(ABC):
    """Of one process. What it finds goes on the result at once, so that it is kept where the process is lost."""

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        self.samples: Samples = {}  # kept with those of the turns

    @abstractmethod
    def goes_on(self, bench: Bench) -> bool:
        """Whether there is another step."""

    def begin(self, process: OneProcess) -> None:  # noqa: B027  (most have nothing to do)
        """Before the first step."""

    @abstractmethod
    def step(self, process: OneProcess) -> None:
        """Ask by ``process.ask`` for what is judged. Raise OtherWork where it was not done as asked."""

    def end(self, process: OneProcess) -> None:  # noqa: B027
        """After the last step and the last answer."""


def after_turns(
    plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName
) -> AfterTurns | None:
    place = scenario_of(plan, materials.work).after_turns
    if not place:
        return None
    return class_at(place, AfterTurns, "what follows the turns")(plan, block, materials, scratch, name)  # type: ignore[type-abstract]
