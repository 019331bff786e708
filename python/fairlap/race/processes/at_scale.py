"""What differs for a contestant that is raced at a scale: its threads, its limits, and what its ranks showed."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.frameworks.contract import RANKS
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.planning.plan import Plan
from fairlap.request.work import Work
from fairlap.scenarios.asking import Prepared
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.ranks.ranks_messages import RanksFound, StepAlone, SteppedAlone
from fairlap.worker.protocol import Ended
from fairlap.worker.ranks.placement import places_of

_GRACE_S = 6.0
"""What conducts ranks reports which of them did not answer within the limits; only if it does not, the parent does."""

_TURNS = 10


def runs_as_ranks(work: Work) -> bool:
    return work.scale is not None and (work.scale.ranks > 1 or bool(work.scale.hosts))


def in_turn_because_of_ranks(plan: Plan) -> str:
    """Of all blocks, so that the works of a race are measured alike."""
    return "ranks run on while their contestant is frozen" if any(map(runs_as_ranks, plan.works)) else ""


def devices_here(plan: Plan, work: Work) -> str:
    """Name the devices of this machine that a contestant of this work uses, ``cuda:0,cuda:1``, or ``cpu``."""
    devices, scale = plan.devices_of(work), work.scale
    if plan.device == "cpu" or scale is None or not scale.hosts:
        return ",".join(devices)
    here = sum(place.ranks for place in places_of(scale.ranks, scale.hosts) if place.is_here)
    return ",".join(devices[:here]) or "cpu"


def runner_for(runner: Runner, plan: Plan, work: Work) -> Runner:
    """With the environment for the threads of this work."""
    threads = runner.name.threads(plan.threads_of(work))
    if runner.settings is None or runner.settings.threads == threads:
        return runner
    settings = replace(runner.settings, threads=threads)
    return replace(runner, settings=settings, environment=runner.environment_with(threads=threads))


def plan_for(plan: Plan, work: Work) -> Plan:
    """With limits that a conductor can keep."""
    if not runs_as_ranks(work):
        return plan
    limits = plan.limits
    longer = {name: getattr(limits, name) + _GRACE_S for name in ("answer_s", "measure_s")}
    longer["prepare_s"] = limits.start_s + limits.prepare_s + _GRACE_S
    return msgspec.structs.replace(plan, limits=msgspec.structs.replace(limits, **longer))


def record_ranks(result: ProcessResult, prepared: Prepared) -> None:
    """Or that there are none, where the contestant's name promises that they divide something."""
    if prepared.hosts:
        result.ranks = RanksFound(prepared.hosts)
    elif alone := prepared.in_force.get(RANKS):
        result.warnings = [*result.warnings, Notice("W_NOT_DIVIDED", alone)]


def step_alone(worker: WorkerProcess, plan: Plan, result: ProcessResult) -> bool:
    """Time a rank's step alone; return False if the worker was lost over it.

    By then all that was asked for had been measured, but for the ranks' memory.
    """
    assert result.ranks is not None
    try:
        stepped = worker.ask(StepAlone(plan.measuring.seconds, _TURNS), within_s=plan.limits.measure_s)
    except WorkerLost as lost:
        result.ranks = msgspec.structs.replace(result.ranks, stepped=SteppedAlone(why=lost.message))
        return False
    result.ranks = msgspec.structs.replace(result.ranks, stepped=stepped)
    return True


def record_memory(result: ProcessResult, ended: Ended) -> None:
    result.memory = ended.memory
    if result.ranks is not None:
        result.ranks = msgspec.structs.replace(result.ranks, memory=ended.ranks)
