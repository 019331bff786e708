"""A race of one block, as found unless it says otherwise, for tests that look at its processes."""

from __future__ import annotations

import os
from typing import Any

from fairlap.race.planning.plan import Measuring
from fairlap.race.run import Run
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.process_result import ProcessResult
from small_races import run_race, small_plan


def run_of_one_block(
    contestants: str,
    work: Work,
    *,
    conditions: Conditions = "as-found",
    threads: int = 1,
    seconds: float = 0.1,
    rounds: int = 4,
    **options: Any,
) -> Run:
    """``options`` are those of ``draw_plan``: device, data, limits and others."""
    plan = small_plan(
        contestants,
        work,
        conditions=conditions,
        threads=threads,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        measuring=Measuring(seconds=seconds, rounds=rounds),
        **options,
    )
    race = run_race(plan)
    return Run(
        plan,
        race.processes,
        {},
        race.shares(),
        profiles=race.findings.profiles,
        compilations=race.findings.compilations,
    )


def processes_of_one_block(contestants: str, work: Work, **options: Any) -> dict[str, ProcessResult]:
    """By contestant."""
    return {process.contestant: process for process in run_of_one_block(contestants, work, **options).processes}
