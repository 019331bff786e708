"""Runs as two machines would have written them: one slower and cheaper by the hour, one quicker with a sensor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.race.run import Run
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.runs.run_file import save_run
from runs_for_rows import a_run


def a_slower_run(listed: str = "torch,jax:fast") -> Run:
    run = a_run(listed=listed)
    for process in run.processes:
        scale_times(process, 1 / 0.6)
    return run


def a_quicker_run(listed: str = "torch,jax:fast") -> Run:
    """Its calls draw 2 mJ an item."""
    run = a_run(listed=listed)
    run.machine["cpu model"] = "Imaginary 9100"
    for process in run.processes:
        process.version = "1.3.0"
        process.energy = EnergyOfBlock(1.0, 100, [EnergyRead("psys", 0.8, 0.79, 0.81, peak_w=2.0)])
    return run


def scale_times(process: ProcessResult, factor: float) -> None:
    process.timings = {name: _scaled(timing, factor) for name, timing in process.timings.items()}


def _scaled(timing: Timing, factor: float) -> Timing:
    percentiles = {name: getattr(timing, name) * factor for name in ("p50_ns", "p90_ns", "p99_ns")}
    return msgspec.structs.replace(timing, **percentiles)


def saved(folder: Path, **runs: Callable[[], Run] | Run) -> list[Path]:
    """As run files with these names."""
    paths = []
    for name, run in runs.items():
        path = folder / f"{name}.json"
        save_run(path, run if isinstance(run, Run) else run())
        paths.append(path)
    return paths
