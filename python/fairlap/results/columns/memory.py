"""The columns of a row about memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median_low

from fairlap.meters.memory import INSTALLED
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult

_PEAKS = {
    "peak_memory_bytes": "peak",
    "peak_memory_until_ready_bytes": "peak_until_ready",
    "peak_memory_while_running_bytes": "peak_while_running",
}
_SMALLEST = ("min_memory_bytes", "min_memory_resolution_bytes", "min_memory_limit", "min_memory_tries")
_NOT_ASKED_FOR = "it was not looked for here; --min-memory does, under the verdict's conditions"
_NOT_COUNTED = "they were not counted; --count-allocations does"
_NOT_FINISHED = "the search for it was interrupted or not reached; fairlap compare --resume finishes it"
_NOT_REPORTED = "the worker did not report it"


def memory_of(result: ContestantResult) -> dict[str, Cell]:
    absent, why = memory_absent(result), absence_reason(result)
    own = [process for process in result.finished if not process.works_before]
    peaks = {
        column: cell_or(_bytes(own, layer), why or absent.get(layer, _NOT_REPORTED)) for column, layer in _PEAKS.items()
    }
    installed = _bytes(result.finished, INSTALLED)
    return {**peaks, "installed_bytes": cell_or(installed, why or absent.get(INSTALLED, _NOT_REPORTED))}


def allocations_of(result: ContestantResult) -> dict[str, Cell]:
    found = next((each.allocations_absent for each in result.processes if each.allocations_absent), "")
    why = absence_reason(result) or found or _NOT_COUNTED
    return {
        "allocations": cell_or(_whole(result.finished, _allocations), why),
        "allocated_bytes": cell_or(_whole(result.finished, _allocated_bytes), why),
    }


def smallest_memory_of(result: ContestantResult, *, asked_for: bool) -> dict[str, Cell]:
    """``asked_for`` under the result's own conditions. A search that has ended left what it found."""
    found = result.smallest_memory
    if found is None:
        why = absence_reason(result) or (_NOT_FINISHED if asked_for else _NOT_ASKED_FOR)
        return {name: Cell(None, why) for name in _SMALLEST}
    resolution = float(found.resolution_bytes) if found.bytes is not None else None
    return {
        "min_memory_bytes": cell_or(None if found.bytes is None else float(found.bytes), found.why),
        "min_memory_resolution_bytes": cell_or(resolution, found.why),
        "min_memory_limit": cell_or(found.limit or None, found.why),
        "min_memory_tries": Cell(found.tries),
    }


def memory_by_layer(result: ContestantResult) -> dict[str, float]:
    processes = result.finished
    layers = sorted({layer for process in processes for layer in process.memory.bytes})
    return {
        layer: _middle([process for process in processes if layer in process.memory.bytes], layer) for layer in layers
    }


def memory_absent(result: ContestantResult) -> dict[str, str]:
    """Layers that no process reported, with the reason; the same reason holds for all of them."""
    known = memory_by_layer(result)
    found: dict[str, str] = {}
    for process in result.finished:
        found |= {layer: why for layer, why in process.memory.absent.items() if layer not in known}
    return found


def _allocations(process: ProcessResult) -> float | None:
    return None if process.allocations is None else process.allocations.number


def _allocated_bytes(process: ProcessResult) -> float | None:
    return None if process.allocations is None else process.allocations.bytes


def _bytes(processes: Sequence[ProcessResult], layer: str) -> Estimate | None:
    """Estimate the same figure as among the layers."""
    return _whole(processes, _layer(layer))


def _whole(processes: Sequence[ProcessResult], read: Callable[[ProcessResult], float | None]) -> Estimate | None:
    """Of an even number of processes the lower of the two in the middle: so many one of them really had."""
    found = estimate(processes, read)
    if found is None:
        return None
    low, high = (None if end is None else float(round(end)) for end in (found.low, found.high))
    known = [value for each in processes if (value := read(each)) is not None]
    return Estimate(float(median_low(known)), low, high)


def _middle(processes: Sequence[ProcessResult], layer: str) -> float:
    return float(median_low(process.memory.bytes[layer] for process in processes))


def _layer(name: str) -> Callable[[ProcessResult], float | None]:
    return lambda process: process.memory.bytes.get(name)
