"""The overhead of a call of each contestant, measured once in a race, in a process whose other work is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.plan import Plan
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.untimed.profile_messages import Overhead


@dataclass(frozen=True)
class Overheads:
    _asked: set[tuple[str, str, str]] = field(default_factory=set)  # contestants, works and conditions

    def measured(self, worker: WorkerProcess, result: ProcessResult, plan: Plan) -> bool:
        """Measure the overhead; return False if the worker was lost over it: only its memory is then unknown."""
        whose = (result.contestant, result.work, result.conditions)
        if result.call_cost is None or whose in self._asked:
            return True
        self._asked.add(whose)
        if worker.hello.language != "python":
            result.overhead_absent = "its worker is a program in another language, which may implement only one model"
            return True
        try:
            found = worker.ask(Overhead(), within_s=plan.limits.answer_s)
        except WorkerLost as lost:
            result.overhead_absent = lost.message
            return False
        result.overhead_ns, result.overhead_absent = found.call_ns, found.why
        return True
