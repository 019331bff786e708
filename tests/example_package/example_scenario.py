"""A scenario of another package: how long the first call takes after the contestant had nothing to do for a while.

It is asked where EXAMPLE_PAUSE_S names the pause. The time of a call stands in the rows beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from statistics import median

from fairlap import verdict
from fairlap.race.equal_work.materials import Materials
from fairlap.race.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.request.work import Work
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.latency_messages import Measure
from fairlap.scenarios.process_result import ProcessResult

PAUSE = "EXAMPLE_PAUSE_S"
_FOUND = "after_a_pause_ns"
_PAUSES = 3


class AfterAPause(Scenario):
    judges_rounds = False
    after_turns = "example_scenario:Pauses"

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return PAUSE in os.environ

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        return Ruling(Judged(f"first call after {os.environ[PAUSE]} s of pause", verdict.LATENCY, _after_a_pause_ns))


def _after_a_pause_ns(process: ProcessResult) -> float | None:
    return process.machine.get(_FOUND)


class Pauses(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._within_s = plan.limits.measure_s
        self._times_ns: list[float] = []

    def goes_on(self, bench: Bench) -> bool:
        return len(self._times_ns) < _PAUSES

    def step(self, process: OneProcess) -> None:
        time.sleep(float(os.environ[PAUSE]))
        one_call = Measure(samples=1, warmup=0, calls_per_sample=1)
        measured = process.worker.ask(one_call, within_s=self._within_s)
        self._times_ns.append(1e9 * measured.elapsed_s)

    def end(self, process: OneProcess) -> None:
        process.result.machine = {**process.result.machine, _FOUND: median(self._times_ns)}
