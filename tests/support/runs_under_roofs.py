"""Runs with roofs in round numbers, and processes that know the cost of their calls."""

from __future__ import annotations

import msgspec
from fairlap.machine.hardware.roofs import Roof, Roofs
from fairlap.models.call_cost import CallCost
from fairlap.race.run import Run
from runs_for_rows import a_run

PEAK = 100e9
BANDWIDTHS = {"L1": 200e9, "L2": 100e9, "L3": 20e9, "memory": 10e9}
CACHES = {"L1": 32 * 1024, "L2": 2**20, "L3": 32 * 2**20}
OVERHEAD_NS = 5e3


def some_roofs() -> Roofs:
    return Roofs(
        1,
        {"fp32": _about(PEAK), "bf16": _about(4 * PEAK)},
        {level: _about(value) for level, value in BANDWIDTHS.items()},
        dict(CACHES),
        {"fp32": "avx2", "bf16": "amx"},
        "2026-01-02T03:04:05+00:00",
    )


def _about(value: float) -> Roof:
    return Roof(value, 0.98 * value, 1.01 * value)


def a_run_under_roofs(cost: CallCost, overhead_ns: float | None = OVERHEAD_NS) -> Run:
    """Of two contestants; torch takes 2 ms, jax:fast 1 ms."""
    run = a_run()
    run.roofs = some_roofs()
    for process in run.processes:
        process.call_cost = cost
        if process.block == 0:
            process.overhead_ns = overhead_ns
            process.overhead_absent = "" if overhead_ns else "it refused"
    return run


def without_operations(cost: CallCost) -> CallCost:
    return msgspec.structs.replace(cost, operations=None, counted="they are not counted")
