"""The columns of a row about the largest batch."""

from __future__ import annotations

from fairlap.results.estimates import Cell, absence_reason, cell_or
from fairlap.results.work_result import ContestantResult

_COLUMNS = (
    "largest_batch",
    "largest_batch_resolution",
    "largest_batch_ended_by",
    "largest_batch_memory_limit_bytes",
    "largest_batch_check",
)
_NOT_ASKED_FOR = "it was not looked for here; --max-batch does, under the verdict's conditions"
_NOT_FINISHED = "the search for it was interrupted or not reached; fairlap compare --resume finishes it"
_DEVICE = "the device's own memory is the limit"


def largest_batch_of(result: ContestantResult, *, asked_for: bool) -> dict[str, Cell]:
    """``asked_for`` under the result's own conditions. A search that has ended left what it found."""
    found = result.largest_batch
    if found is None:
        why = absence_reason(result) or (_NOT_FINISHED if asked_for else _NOT_ASKED_FOR)
        return {name: Cell(None, why) for name in _COLUMNS}
    known = found.batch is not None
    limit = None if found.limit_bytes is None else float(found.limit_bytes)
    return {
        "largest_batch": cell_or(found.batch, found.why),
        "largest_batch_resolution": cell_or(found.resolution if known else None, found.why),
        "largest_batch_ended_by": cell_or(found.ended_by or None, found.why),
        "largest_batch_memory_limit_bytes": cell_or(limit, _DEVICE if known else found.why or _DEVICE),
        "largest_batch_check": cell_or(found.checked if known else None, found.why),
    }


def memory_by_batch(result: ContestantResult) -> dict[str, float]:
    return {str(batch): float(peak) for batch, peak, _ in _fitting(result) if peak is not None}


def time_per_item_by_batch_ns(result: ContestantResult) -> dict[str, float]:
    return {str(batch): ns for batch, _, ns in _fitting(result) if ns is not None}


def _fitting(result: ContestantResult) -> list[tuple[int, int | None, float | None]]:
    """List the tries that fitted, the smallest batch first."""
    tries = () if result.largest_batch is None else result.largest_batch.tries
    return sorted((each.batch, each.peak_bytes, each.ns_per_item) for each in tries if each.outcome == "fits")
