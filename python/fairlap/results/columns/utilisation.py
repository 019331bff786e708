"""The columns of a row about the CPU time of calls, and how busy cores and the device were meanwhile."""

from __future__ import annotations

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


def _device_busy_share(process: ProcessResult) -> float | None:
    return None if process.energy is None else process.energy.device_busy_share
