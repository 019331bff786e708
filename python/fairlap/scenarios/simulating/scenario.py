"""The scenario of simulation: contestants are ranked by the steps that they take of environments in a second."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from fairlap import verdict
from fairlap.bench_models.environments.environment import STEPS
from fairlap.request.work import Work
from fairlap.scenarios.calls.calls_scenario import Calls
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling
from fairlap.scenarios.process_result import ProcessResult

BY = "environment steps per second"
_TIME_OF_A_STEP = verdict.Metric("time per environment step", "ns", inverse=BY)
_S = 1e9


def steps_per_s(environments: int, process: ProcessResult) -> float | None:
    """By the median call."""
    return _S * STEPS * environments / process.headline_ns if process.timings else None


class Simulating(Calls):
    race_side = "fairlap.scenarios.simulating.race.from_request:SimulatingFromRequest"
    render_side = "fairlap.scenarios.simulating.render.shown:SimulatingShown"
    judged_before = ()  # rows of simulation have always said by what they were ranked

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.mode == "simulate"

    def may_share_process(self, work: Work) -> bool:
        return False  # the type of its numbers is a setting of the whole process

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        read = partial(steps_per_s, work.batch)
        return Ruling(Judged(BY, _TIME_OF_A_STEP, read, "1/s", of_rounds=True), remark=BY)
