"""Saved runs with known figures."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fairlap.race.run import Run
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult, Timing
from small_races import small_plan

WORK = Work("mlp", 1)
MACHINE = {"cpu model": "one", "kernel": "6.1", "cores": "2"}


def saved_run(
    medians_ns: dict[str, float],
    *,
    blocks: int = 12,
    seed: int = 0,
    versions: dict[str, str] | None = None,
    machine: dict[str, str] = MACHINE,
    threads: int = 1,
    spread: float = 0.003,
    data: str = "",
    hashes: Sequence[str] = ("0123456789ab",),
    pipeline: str = "fairlap",
    quantity: str = "wall_ns",
) -> Run:
    """Every contestant around its median, in blocks. Where it was fed, its processes have these hashes in turn."""
    plan = small_plan(
        ",".join(medians_ns), WORK, blocks=blocks, threads=threads, available_cores=(0, 1), seed=seed, data=data
    )
    rng = random.Random(seed)
    processes: list[ProcessResult] = []
    for block in range(blocks):
        for name, middle in medians_ns.items():
            ns = middle * rng.lognormvariate(0, spread)
            process = ProcessResult(block, 0, name, WORK.id, "as-found", version=(versions or {}).get(name, "1.0"))
            process.timings = {quantity: Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
            process.in_force = {"threads": str(threads), "precision": "fp32", "cache hits": str(block % 2)}
            if data:
                hashed = {"data_hash": hashes[len(processes) % len(hashes)]} if hashes else {}
                process.in_force = {**process.in_force, "feed": pipeline, **hashed}
            processes.append(process)
    return Run(plan, processes, dict(machine), {"whole": 1.0})
