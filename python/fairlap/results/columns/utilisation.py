"""The columns of a row about the CPU time of calls, and how busy cores and the device were meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from fairlap.meters.device_slowdown import DeviceState
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult


def utilisation_of(result: ContestantResult, *, threads: int, device: str) -> dict[str, Cell]:
    why = absence_reason(result)

    def cpu(process: ProcessResult) -> float | None:
        return None if process.busy_cores is None or process.elsewhere else process.busy_cores / threads

    elsewhere = next((process.elsewhere for process in result.finished), "")
    gpu = cell_or(estimate(result.finished, _device_busy_share), why or "NVML gave no sample while it was measured")
    return {
        "cpu_time_ns": cell_or(
            estimate(result.finished, lambda process: process.cpu_time_ns), why or elsewhere or "it was not counted"
        ),
        "cpu_busy_share": cell_or(estimate(result.finished, cpu), why or elsewhere or "its CPU time was not counted"),
        "gpu_busy_share": Cell(None, why or "it ran on the processor") if device == "cpu" else gpu,
    }


_STATES: dict[str, Callable[[DeviceState], float | None]] = {
    "gpu_sm_mhz": lambda state: state.sm_mhz,
    "gpu_temperature_c": lambda state: state.temperature_c,
    "gpu_power_w": lambda state: state.power_w,
    "gpu_memory_bytes": lambda state: state.used_bytes,
}


def device_states_of(result: ContestantResult) -> dict[str, Any]:
    """Medians over its processes, before their first turn and after their last one; of the clock also meanwhile.

    Of several GPUs they are of each, by its name: ``cuda:1 start``.
    """
    several = any(len(process.device_states) > _OF_ONE for process in result.finished)
    found: dict[str, dict[str, list[float]]] = {column: {} for column in _STATES}
    for process in result.finished:
        before = len(process.device_states) // 2
        for place, state in enumerate(process.device_states):
            when = f"{state.device} " * several + ("start" if place < before else "end")
            for column, read in _STATES.items():
                if (value := read(state)) is not None:
                    found[column].setdefault(when, []).append(value)
        for when, mhz in _measured_mhz(process):
            found["gpu_sm_mhz"].setdefault(when, []).append(mhz)
    return {column: {when: float(median(each)) for when, each in own.items()} for column, own in found.items()}


_OF_ONE = 2  # states: before and after


def _measured_mhz(process: ProcessResult) -> Iterator[tuple[str, float]]:
    """List the mean clocks while calls were timed."""
    if process.energy is None:
        return
    if process.energy.device_sm_mhz is not None:
        yield "measured", process.energy.device_sm_mhz
    devices = {state.sensor: state.device for state in process.device_states}
    for sensor, mhz in process.energy.sm_mhz_by_sensor.items():
        yield f"{devices.get(sensor, sensor)} measured", mhz


def _device_busy_share(process: ProcessResult) -> float | None:
    return None if process.energy is None else process.energy.device_busy_share
