"""Where a race puts what its processes answer, and what it remembers from one process to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.meters.energy import Sensed
from fairlap.race.equal_work.answers import Agreement
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.scores import Scores
from fairlap.race.planning.plan import Plan
from fairlap.race.processes.kept_workers import KeptWorkers
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.untimed.profile_messages import Overhead

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Overheads:
    """The overhead of a call of each contestant, measured once in a race, in a process whose other work is done.

    It is the same for all works of one process, which have one precision, so those that follow get that of the first.
    """

    _asked: set[tuple[str, str, str]] = field(default_factory=set)  # contestants, ids of works, and conditions
    _of_processes: dict[str, float] = field(default_factory=dict)  # by contestant, of its newest process

    def measured(self, worker: WorkerProcess, result: ProcessResult, plan: Plan) -> bool:
        """Measure the overhead; return False if the worker was lost over it: only its memory is then unknown."""
        whose = (result.contestant, result.work_id, result.conditions)
        if result.call_cost is None or whose in self._asked:
            return True
        self._asked.add(whose)
        if result.works_before and result.contestant in self._of_processes:
            result.overhead_ns = self._of_processes[result.contestant]
            return True
        self._of_processes.pop(result.contestant, None)
        if worker.hello.language != "python":
            result.overhead_absent = "its worker is a program in another language, which may implement only one model"
            return True
        try:
            found = worker.ask(Overhead(), within_s=plan.limits.answer_s)
        except WorkerLost as lost:
            result.overhead_absent = lost.message
            return False
        result.overhead_ns, result.overhead_absent = found.call_ns, found.why
        if found.call_ns is not None:
            self._of_processes[result.contestant] = found.call_ns
        return True


@dataclass(frozen=True)
class Bench:
    scratch: Path
    agreement: Agreement
    sensed: Sensed
    feeding: Feeding
    scores: Scores
    kept_workers: KeptWorkers
    may_go_on: Callable[[], bool] = lambda: True  # to another turn, epoch or trial
    overheads: Overheads = field(default_factory=Overheads)
    # After each part of a turn: what the process has reached, and the seconds that are left in the block at most.
    goes_on: Callable[[ProcessResult, str, float], object] = lambda *_: None
    ends_by_s: float = math.inf  # of every process, on the clock of time.monotonic
    longest_request_s: float = math.inf  # of preparing, answering and measuring
    of_scenarios: dict[type, Any] = field(default_factory=dict)

    def kept(self, kind: type[Kept], make: Callable[[], Kept]) -> Kept:
        """Return what a scenario keeps from one process of the race to the next; it is made for the first."""
        if kind not in self.of_scenarios:
            self.of_scenarios[kind] = make()
        found: Kept = self.of_scenarios[kind]
        return found
