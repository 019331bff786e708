"""Counting what a call of each contestant allocates: in the processes that are raced, after all else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlap.errors import InvalidRequest
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.allocators import LIBRARIES, preloading
from fairlap.meters.allocations import LIBRARY
from fairlap.race.planning.plan import Plan
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.untimed.allocations_messages import CountAllocations
from fairlap.worker.process_options import ALLOCATOR

OPTION = "--count-allocations"


def require_countable(plan: Plan) -> None:
    """Refuse a system without such a library, and allocators that C++ calls past ``malloc``."""
    if not plan.count_allocations:
        return
    if not LIBRARY.is_file():
        system = "" if sys.platform == "linux" else ", which is for Linux"
        raise InvalidRequest(f"{OPTION} needs {LIBRARY.name}{system}; install fairlap again, or leave it out")
    for name in plan.contestants:
        if (allocator := name.framework_options.get(ALLOCATOR)) in LIBRARIES:
            raise InvalidRequest(
                f"{name.text}: allocations by {allocator} are not counted whole; leave out {ALLOCATOR}= or {OPTION}"
            )


def counting(runners: Sequence[Runner], plan: Plan) -> list[Runner]:
    """Let the processes of all contestants count, if that is asked for, so that their times stay comparable."""
    if not plan.count_allocations:
        return list(runners)
    return [replace(runner, environment=counting_environment(runner.environment)) for runner in runners]


def counting_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Let a process that gets these variables count: before any other library that is preloaded."""
    return {**environment, **preloading(LIBRARY, {**os.environ, **environment})}


def count_allocations(worker: WorkerProcess, result: ProcessResult, plan: Plan) -> bool:
    """Return False if the worker was lost over it: only its memory is then unknown."""
    if not plan.count_allocations:
        return True
    if worker.hello.language != "python":
        result.allocations_absent = "its worker is a program in another language, which does not count them"
        return True
    try:
        found = worker.ask(CountAllocations(), within_s=plan.limits.answer_s)
    except WorkerLost as lost:
        result.allocations_absent = lost.message
        return False
    result.allocations, result.allocations_absent = found.allocations, found.why
    return True
