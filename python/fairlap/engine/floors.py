"""The floor of each timing method, measured on this machine."""

from __future__ import annotations

from typing import Any

from fairlap.engine import _native
from fairlap.engine.clocks import clock_named
from fairlap.engine.cuda.floor import cuda_floors


def cpu_floor(source: str = "auto") -> dict[str, Any]:
    """Quantum, overhead, bias and drift of the CPU clock, measured on this machine."""
    clock = clock_named(source)
    check = clock.check_drift()
    floor: dict[str, Any] = {
        "source": clock.source,
        "quantum_ns": clock.quantum_ns,
        "overhead_ns": clock.overhead_ns,
        "bias_ns": clock.bias_ns,
        "ns_per_tick": clock.ns_per_tick,
        "calibration_uncertainty_ppm": clock.calibration_uncertainty_ppm,
        "drift_ppm": check.drift_ppm,
        "drift_resolution_ppm": check.resolution_ppm,
        "kernel_clock_source": _native.kernel_clock_source(),
        "under_hypervisor": _native.under_hypervisor(),
        "trusted": clock.trusted,
    }
    if clock.counter_distrust:
        floor["counter_distrust"] = clock.counter_distrust
    return floor


def floor(clock: str = "auto") -> dict[str, Any]:
    """Measure the floors: ``cpu``, and ``cuda`` as a list of devices, or None with the reason in ``cuda_absent``."""
    devices, absent = cuda_floors()
    floors: dict[str, Any] = {"cpu": cpu_floor(clock), "cuda": devices}
    if devices is None:
        floors["cuda_absent"] = absent
    return floors
