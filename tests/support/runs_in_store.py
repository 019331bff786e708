"""Runs put into a store as a race would: process by process, with samples for those that finished."""

from __future__ import annotations

import math

import numpy as np
from fairlap.race.run import Run
from fairlap.scenarios.process_result import AnswerError, ProcessResult
from fairlap.store.file_store import Store
from fairlap.store.recording import Recording, begin_recording
from runs_for_rows import a_run, crashed
from runs_under_roofs import some_roofs


def a_run_with_everything() -> Run:
    """Make a run with a crash, a gradient's error without a cosine, an infinite one, and roofs."""
    run = a_run(listed="torch,jax:fast,onnxruntime")
    crashed(run.processes[3])
    run.processes[3].details = "Traceback\n  ü"
    run.processes[4].errors.append(AnswerError("slope", "after", math.nan, math.nan, 1e-3, True))
    run.processes[5].errors.append(AnswerError("logits", "after", math.nan, math.inf, math.inf, False, "infinite"))
    run.wall_s = {"whole": 10.25, "frameworks": 9.0}
    run.roofs = some_roofs()
    return run


def samples_of(process: ProcessResult, count: int = 50) -> dict[str, np.ndarray]:
    """Of the same process always the same; the last is none, as the engine leaves it where it could not measure."""
    if not process.finished:
        return {}
    drawn = np.random.default_rng([process.block, *process.contestant.encode()]).normal(1e6, 1e4, count)
    drawn[-1] = np.nan
    return {"wall_ns": drawn, "host_issue_ns": drawn / 2}


def recording_of(store: Store, run: Run, processes: int | None = None) -> Recording:
    recording = begin_recording(store, run.plan, run.machine, run.began_at, run.roofs)
    for process in run.processes[:processes]:
        recording.keep(process, samples_of(process))
    return recording


def keep_whole(store: Store, run: Run) -> str:
    recording = recording_of(store, run)
    recording.end(run.wall_s)
    return recording.run
