"""What events on each CUDA device of this machine can and cannot tell."""

from __future__ import annotations

from typing import Any

from fairlap.engine import _native
from fairlap.engine.clocks import clock_named

HOW = {
    "event_quantum_ns": "smallest step among the spans of kernels of many lengths",
    "empty_pair_ns": "median span of two events with nothing between them, behind a gate where there is one",
    "record_cost_ns": "median host time of recording one event",
    "launch_cost_ns": "median host time of launching one empty kernel",
    "gate_release_ns": "median host time from opening the gate to seeing the stream run",
    "timer_step_ns": "smallest step of the device's %globaltimer",
    "context_pair_ns": "median span of two context-wide events with nothing between them",
    "record_step_ns": "smallest step among the times in activity records",
    "empty_kernel_ns": "median length of an empty kernel in activity records",
}
"""How each figure of a floor was measured."""


def cuda_floors() -> tuple[list[dict[str, Any]] | None, str]:
    """Every CUDA device with its measured floor, or None and the reason.

    This starts a device that nothing in the process uses yet, and gives it back: a process without a framework has no
    context to borrow. Nothing else in fairlap does that.
    """
    absent = _native.cuda_absent_because()
    if absent:
        return None, absent
    try:
        devices = _native.cuda_devices(clock_named())
    except (_native.CudaError, _native.CudaUnavailable) as error:
        return None, str(error)
    if not devices:
        return None, "the driver is there and sees no device"
    return [_described(device) for device in devices], ""


def _described(device: dict[str, Any]) -> dict[str, Any]:
    floor = device.pop("floor")
    version = device.pop("driver_cuda_version")
    reasons = {key: device.pop(key) for key in ("gate_because", "context_events_absent", "floor_absent")}
    return {
        **device,
        "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
        **floor,
        "how": {name: HOW[name] for name in floor},
        **{key: reason for key, reason in reasons.items() if reason},
    }
