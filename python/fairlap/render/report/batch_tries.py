"""The section of the page about the search for the largest batch: every batch that was tried."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.render.report.markup import Markup, table
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.process_result import BatchTry

_HEADS = ["contestant", "batch", "outcome", "peak memory", "time per item", "why"]


def batch_tries(work_result: WorkResult) -> Markup | None:
    found = [(each.contestant, each.largest_batch) for each in work_result.contestants if each.largest_batch]
    if not found:
        return None
    rows: list[dict[str, Markup | str]] = []
    for contestant, search in found:
        if not search.tries:
            rows.append({"contestant": contestant, "outcome": "not tried", "why": search.why})
        rows += [_row(contestant, each) for each in sorted(search.tries, key=lambda each: each.batch)]
    caption = f"Batches that were tried: {work_result.work.label}, {work_result.conditions}"
    return table(caption, _HEADS, rows, "batches cards", [str(row["contestant"]) for row in rows])


def _row(contestant: str, each: BatchTry) -> dict[str, Markup | str]:
    return {
        "contestant": contestant,
        "batch": f"{each.batch:,}",
        "outcome": each.outcome.replace("_", " "),
        "peak memory": "–" if each.peak_bytes is None else quantity_text.size(each.peak_bytes),
        "time per item": "–" if each.ns_per_item is None else quantity_text.duration(each.ns_per_item),
        "why": each.why or "–",
    }
