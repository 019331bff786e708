"""The overhead of a call of each contestant, measured once in a race, in a process that has done all its other work."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.plan import Plan
from fairlap.race.process_result import ProcessResult


@dataclass(frozen=True)
class Overheads:
    _asked: set[tuple[str, str, str]] = field(default_factory=set)  # contestants, works and conditions

    def measured(self, worker: WorkerProcess, result: ProcessResult, plan: Plan) -> bool:
        """False if that lost the worker, which loses nothing but how much memory it held."""
        whose = (result.contestant, result.work, result.conditions)
        if plan.device != "cpu" or result.call_cost is None or whose in self._asked:
            return True
        self._asked.add(whose)
        if worker.hello.language != "python":
            result.overhead_absent = "it is a program of its own, which may know no other model"
            return True
        try:
            found = worker.overhead(within_s=plan.limits.answer_s)
        except WorkerLost as lost:
            result.overhead_absent = lost.message
            return False
        result.overhead_ns, result.overhead_absent = found.call_ns, found.why
        return True
