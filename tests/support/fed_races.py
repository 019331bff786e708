"""Small races with data, drawn or in a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.run import Run
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from small_races import run_race, small_plan

QUICK = Limits(start_s=60, prepare_s=60, answer_s=60, measure_s=60)


def planned(contestants: str, data: str = "synthetic", blocks: int = 1) -> Plan:
    return small_plan(
        contestants,
        Work("mlp", 4),
        blocks=blocks,
        available_cores=tuple(sorted(os.sched_getaffinity(0)))[:1],
        measuring=Measuring(seconds=0.05),
        limits=QUICK,
        data=data,
    )


def run_of(contestants: str, data: str = "synthetic") -> Run:
    running = run_race(planned(contestants, data))
    return Run(running.plan, running.processes, {}, {})


def race(contestants: str, data: str = "synthetic") -> list[ProcessResult]:
    return sorted(run_of(contestants, data).processes, key=lambda process: process.contestant)


def images(folder: Path, samples: int) -> Path:
    rng = np.random.default_rng(7)
    np.save(folder / "mine.npy", rng.standard_normal((samples, 784), dtype=np.float32))
    return folder / "mine.npy"
