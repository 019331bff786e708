"""The columns of a row about the CPU time of calls, and how busy cores and the device were meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def device_states_of(result: ContestantResult) -> dict[str, Any]:
    """Medians over its processes, before their first turn and after their last one; of the clock also meanwhile."""
    meanwhile = [process.energy.device_sm_mhz for process in result.finished if process.energy is not None]
    known_mhz = [mhz for mhz in meanwhile if mhz is not None]
    states = [process.device_states for process in result.finished if process.device_states]
    return {
        "gpu_sm_mhz": {
            **_medians(states, lambda state: state.sm_mhz),
            **({"measured": float(median(known_mhz))} if known_mhz else {}),
        },
        "gpu_temperature_c": _medians(states, lambda state: state.temperature_c),
        "gpu_power_w": _medians(states, lambda state: state.power_w),
        "gpu_memory_bytes": _medians(states, lambda state: state.used_bytes),
    }


def _medians(states: Sequence[Sequence[DeviceState]], read: Callable[[DeviceState], float | None]) -> dict[str, float]:
    found = {
        when: [value for each in states if (value := read(each[place])) is not None]
        for when, place in (("start", 0), ("end", -1))
    }
    return {when: float(median(values)) for when, values in found.items() if values}


def _device_busy_share(process: ProcessResult) -> float | None:
    return None if process.energy is None else process.energy.device_busy_share
