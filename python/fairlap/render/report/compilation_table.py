"""What compiling did to each contestant: its counts, and a row for all other inputs that it was called on."""

from __future__ import annotations

from collections.abc import Iterator

from fairlap import quantity_text
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult
from fairlap.render.report.markup import Markup, table, tag
from fairlap.render.text.compilation import counts_text, heading, what_happened
from fairlap.results.columns.compilation import found_for
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult

_HEADS = ["contestant", "inputs", "first call", "stall", "later calls", "prepared for it", "details"]
_NS_PER_S = 1e9


def compilation_table(shown: Results, work_result: WorkResult) -> Markup | None:
    """None where nothing was asked under these conditions."""
    found = [found_for(shown.run, work_result, result) for result in work_result.contestants]
    known = [each for each in found if each is not None]
    if not known:
        return None
    rows = [(each.contestant, row) for each in known for row in _rows(each)]
    caption = f"{shown.run.plan.title_of(work_result.work)}, {work_result.conditions}"
    return table(caption, _HEADS, [row for _, row in rows], "cards", [name for name, _ in rows])


def _rows(found: CompilationResult) -> Iterator[dict[str, Markup | str]]:
    counts = [counts_text(found), *dict.fromkeys(f"break: {reason}" for reason in found.described.break_reasons)]
    yield {"contestant": tag("strong", found.contestant), "details": "; ".join(counts)}
    for at in found.batches:
        yield _row(found.contestant, at)


def _row(contestant: str, at: AtBatch) -> dict[str, Markup | str]:
    resized = at.resized
    return {
        "contestant": contestant,
        "inputs": heading(at),
        "first call": what_happened(at) if resized.first_s is not None else "–",
        "stall": _duration(resized.stall_s, resized.why),
        "later calls": _duration(resized.call_s, resized.why),
        "prepared for it": _duration(at.prepared_call_s, at.why_not_prepared),
        "details": "; ".join(resized.reasons) or resized.why,
    }


def _duration(seconds: float | None, why: str) -> Markup | str:
    if seconds is not None:
        return quantity_text.duration(seconds * _NS_PER_S)
    return tag("span", "–", title=why, aria_label=f"absent: {why}", role="img", class_="absent")
