"""The table of a race of several operations: a line for each, with every contestant's place, time and ratio."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.models.operations.kinds import operation_named
from fairlap.render.encoders.text import aligned
from fairlap.render.scenario_side import with_words_beside
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult, WorkResult

_FEWEST = 2


def operations_lines(results: Results) -> list[str]:
    """Under the verdict's conditions. Fewer than two operations have no table; what was skipped is always listed."""
    raced = [
        each
        for work in results.works()
        if operation_named(work.model) is not None
        for each in results.of_work(work)[:1]
    ]
    lines = _table(results.contestants, raced) if len(raced) >= _FEWEST else []
    return [*lines, *(f"skipped {each.name}: {each.why}" for each in results.run.plan.skipped)]


def _table(contestants: list[str], raced: list[WorkResult]) -> list[str]:
    labels = _labels(raced)
    rows = [["operation", *contestants]]
    for label, work_result in zip(labels, raced, strict=True):
        cells = {result.contestant: _cell(work_result, result, row) for result, row in work_result.with_rows()}
        rows.append([label, *(cells.get(name, "") for name in contestants)])
    return aligned(rows)


def _labels(raced: list[WorkResult]) -> list[str]:
    """Take the operations' names where they are unique; otherwise the whole labels of the works."""
    names = [each.work.model for each in raced]
    return names if len(set(names)) == len(names) else [each.work.label for each in raced]


def _cell(work_result: WorkResult, result: ContestantResult, row: Row) -> str:
    if not result.finished or not result.ranked:
        return with_words_beside(result.worst_outcome.replace("_", " "), row)
    place = f"#{row.place}" if row.place else "-"
    first = work_result.contestants[0]
    ratio = "" if result is first else f" ({quantity_text.times(result.median_ns / first.median_ns)})"
    return with_words_beside(f"{place} {quantity_text.duration(result.median_ns)}{ratio}", row)
