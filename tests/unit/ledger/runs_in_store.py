"""Runs put into a store as a race would: lap by lap, with samples for those that finished."""

from __future__ import annotations

import math

import numpy as np
from fairlap.ledger.recording import Recording
from fairlap.ledger.store import Store
from fairlap.race.laps import AnswerError, Lap
from fairlap.race.saving import SavedRun
from runs_for_rows import a_run, crashed


def a_run_with_everything() -> SavedRun:
    """A crash, a gradient's error without a cosine, an infinite one."""
    run = a_run(listed="torch,jax:fast,onnxruntime")
    crashed(run.laps[3])
    run.laps[3].details = "Traceback\n  ü"
    run.laps[4].errors.append(AnswerError("slope", "after", math.nan, math.nan, 1e-3, True))
    run.laps[5].errors.append(AnswerError("logits", "after", math.nan, math.inf, math.inf, False, "infinite"))
    run.wall_s = {"whole": 10.25, "frameworks": 9.0}
    return run


def samples_of(lap: Lap, count: int = 50) -> dict[str, np.ndarray]:
    """Of the same lap always the same; the last is none, as the engine leaves it where it could not measure."""
    if not lap.finished:
        return {}
    drawn = np.random.default_rng([lap.block, *lap.contestant.encode()]).normal(1e6, 1e4, count)
    drawn[-1] = np.nan
    return {"wall_ns": drawn, "host_issue_ns": drawn / 2}


def recording_of(store: Store, run: SavedRun, laps: int | None = None) -> Recording:
    recording = store.begin(run.plan, run.machine, run.began_at)
    for lap in run.laps[:laps]:
        recording.keep(lap, samples_of(lap))
    return recording


def keep_whole(store: Store, run: SavedRun) -> str:
    recording = recording_of(store, run)
    recording.end(run.wall_s)
    return recording.run
