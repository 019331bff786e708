"""Runs whose figures follow from raw samples, as those of a race do, in a store or in memory."""

from __future__ import annotations

import numpy as np
from fairlap.race.processes.recorded_turns import medians_of_turns, timing_of
from fairlap.race.run import Run
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.recording import begin_recording
from fairlap.store.store import open_store
from runs_for_rows import a_run

_ROUNDS, _SAMPLES_OF_A_ROUND = 4, 25


def a_measured_run(
    blocks: int = 8, listed: str = "torch,jax:fast"
) -> tuple[Run, dict[tuple[int, str], dict[str, np.ndarray]]]:
    """With the samples of each process, which took four turns."""
    run = a_run(blocks=blocks, listed=listed)
    samples = {}
    for process in run.processes:
        rng = np.random.default_rng([process.block, *process.contestant.encode()])
        drawn = rng.normal(process.headline_ns, process.headline_ns / 50, _ROUNDS * _SAMPLES_OF_A_ROUND)
        process.round_samples = [_SAMPLES_OF_A_ROUND] * _ROUNDS
        measure(process, drawn)
        samples[process.block, process.contestant] = {"wall_ns": drawn}
    return run, samples


def measure(process: ProcessResult, samples_ns: np.ndarray) -> None:
    """Record what a race does of these samples."""
    process.rounds_ns = medians_of_turns(samples_ns, process.round_samples)
    process.phases_s["measured"] = float(np.nansum(samples_ns)) / 1e9
    timing = process.timings["wall_ns"]
    process.timings = {
        "wall_ns": timing_of(
            samples_ns,
            in_rounds=True,
            calls_per_sample=1,
            method=timing.method,
            resolution_ns=timing.resolution_ns,
            whose=process.contestant,
        )
    }


def store_measured_run() -> str:
    run, samples = a_measured_run()
    with open_store() as store:
        recording = begin_recording(store, run.plan, run.machine, run.began_at)
        for process in run.processes:
            recording.keep(process, samples[process.block, process.contestant])
        recording.end(run.wall_s)
        return recording.run
