"""The columns of a row about the time of a call: by each quantity that was measured, with its method."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fairlap.request.fields.device_conditions import CACHE, REGIME
from fairlap.request.work import Work
from fairlap.results.column_definitions.calls import ModeOfProcesses
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.reported import REPORTED_TIME

_ON_DEVICE = ("device_span_ns", "context_span_ns", "kernel_sum_ns")
_QUANTITIES = ("host_issue_ns", *_ON_DEVICE)


def latency_of(result: ContestantResult, work: Work, latency: Estimate | None, *, device: str) -> dict[str, Cell]:
    processes, why = result.finished, absence_reason(result)
    first = processes[0].calls if processes else None
    cells = {
        "latency_p50_ns": cell_or(latency, why),
        "latency_p90_ns": cell_or(estimate(processes, lambda process: process.calls.p90_ns), why),
        "latency_p99_ns": cell_or(estimate(processes, lambda process: process.calls.p99_ns), why),
        "method": cell_or(first and first.method, why),
        "resolution_ns": cell_or(first and first.resolution_ns, why),
        "throughput_per_s": cell_or(estimate(processes, lambda process: process.items_per_s(work.batch)), why),
    }
    by_itself = "it is not ranked by times that it reports itself"
    cells["reported_ns"] = cell_or(estimate(processes, partial(median_of, REPORTED_TIME)), why or by_itself)
    for name in _QUANTITIES:
        cells[name] = cell_or(
            estimate(processes, partial(median_of, name)), _why_untimed(processes, name) if processes else why
        )
    cells["device_method"] = cell_or(_device_method(processes), cells["device_span_ns"].absent)
    on_processor = "it ran on the processor" if device == "cpu" else ""
    conditions = processes[0].device_conditions if processes else {}
    cells["device_cache"] = cell_or(None if on_processor else conditions.get(CACHE, "warm"), why or on_processor)
    cells["device_regime"] = cell_or(
        conditions.get(REGIME), why or on_processor or "its GPU neither rested nor was loaded before"
    )
    return cells


def _why_untimed(processes: Sequence[ProcessResult], quantity: str) -> str:
    given = (process.untimed[quantity] for process in processes if quantity in process.untimed)
    return next(given, "the method does not give it")


def _device_method(processes: Sequence[ProcessResult]) -> str | None:
    """Of each quantity of the device that was measured, since the headline is the wall time."""
    methods = {
        name: process.timings[name].method for name in _ON_DEVICE for process in processes if name in process.timings
    }
    return "; ".join(f"{name.removesuffix('_ns')}: {method}" for name, method in methods.items()) or None


def median_of(quantity: str, process: ProcessResult) -> float | None:
    figure = process.timings.get(quantity)
    return None if figure is None else figure.p50_ns


def modes_of(result: ContestantResult) -> list[ModeOfProcesses]:
    if result.figure is None or not result.figure.modes.several:
        return []
    return [ModeOfProcesses(mode.value, mode.share) for mode in result.figure.modes.modes]
