"""What a race showed, as text for a terminal.

What a contestant took beside time, in words under its line in a terminal, with the figures of its row. Nothing for
what was not asked or read.
"""

from __future__ import annotations

from fairlap import quantity_text, verdict
from fairlap.race.plan import Plan
from fairlap.request.work import Work, work_title
from fairlap.results.feeding import NO_CAUSE_TOLD, WORK
from fairlap.results.results import Results
from fairlap.results.row import Estimate, Row
from fairlap.results.work_result import PAGE_FAULTS, ContestantResult, WorkResult
from fairlap.verdict.modes import REMEDIES

_NS_OF_A_FAULT = 500.0  # about what the kernel takes to hand a page out; clearing it comes on top
_SHARE_WORTH_TELLING = 0.02


def text_of(results: Results) -> str:
    """The whole answer: for each work what matters most first."""
    parts = []
    for work in results.works():
        lines = _order_line(results, work)
        for work_result in results.of_work(work):
            lines += _work_lines(results.run.plan, work_result)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _order_line(results: Results, work: Work) -> list[str]:
    differs = results.order_differs(work)
    if differs is None:
        return []
    found, controlled = (" < ".join(order) for order in differs)
    return [
        "The order depends on the conditions; see the causes below.",
        f"  as found:   {found}",
        f"  controlled: {controlled}",
    ]


def _work_lines(plan: Plan, work_result: WorkResult) -> list[str]:
    blocks = quantity_text.count(len(work_result.blocks.kept), "complete block")
    threads = quantity_text.count(plan.threads, "thread")
    title = work_title(work_result.work.label, plan.data)
    lines = [f"{title} · {plan.device} ({threads}) · {work_result.conditions}, {blocks}"]
    width = max(len(row.contestant) for row in work_result.contestants)
    places = {place.contestant: place.label for place in work_result.standing.places} if work_result.standing else {}
    for result, row in work_result.with_rows():
        place = places.get(result.contestant, "-")
        lines.append(f"  {place:>3} {result.contestant:<{width}}  {_row_text(work_result, result)}")
        lines += [f"      {' ' * width} {note}" for note in (*_resources(result, row), *_remarks(result))]
    lines += [f"  {sentence}" for sentence in _sentences(work_result)]
    if str(work_result.blocks):
        lines.append(f"  {work_result.blocks!s}")
    if work_result.busy:
        lines.append(f"  ! {work_result.busy}")
    if work_result.why_no_verdict:
        lines.append(f"  no verdict: {work_result.why_no_verdict}")
    return lines


def _sentences(work_result: WorkResult) -> list[str]:
    """The pairs a reader asks for: the first against each of the others. All pairs are in the JSON."""
    if work_result.standing is None:
        return []
    first = work_result.standing.places[0].contestant
    return [str(verdict.sentence(each)) for each in work_result.comparisons if first in (each.a, each.b)]


def _row_text(work_result: WorkResult, row: ContestantResult) -> str:
    if row.figure is None:
        return row.trouble
    if row.figure.value is None:
        listed = ", ".join(
            f"{quantity_text.duration(m.value)} in {quantity_text.share(m.share)} of processes"
            for m in row.figure.modes.modes
        )
        text = f"two modes: {listed}" if len(row.figure.modes.modes) == 2 else f"modes: {listed}"
    else:
        text = _with_interval(row.figure)
    times = f"  {quantity_text.times(_times_the_first(work_result, row))}"
    error = row.worst_relative_error
    return f"{text}{times}" + (f"  error {quantity_text.relative_error(error)}" if error is not None else "")


def _times_the_first(work_result: WorkResult, row: ContestantResult) -> float:
    """As the verdict tells it, from blocks in which both ran; where there is none, of the medians."""
    first = work_result.contestants[0]
    for each in work_result.comparisons:
        if {each.a, each.b} == {first.contestant, row.contestant}:
            return each.ratio if each.a == row.contestant else each.reversed().ratio
    return row.median_ns / first.median_ns


def _with_interval(figure: verdict.ContestantFigure) -> str:
    return quantity_text.duration_interval(figure.value or 0.0, figure.low or None, figure.high)


def _remarks(row: ContestantResult) -> list[str]:
    if not row.finished:
        return []
    remarks = []
    if row.figure is not None and row.trouble:
        remarks.append(f"! {row.trouble}")
    faults = row.median_of(PAGE_FAULTS)
    if faults is not None and faults * _NS_OF_A_FAULT > _SHARE_WORTH_TELLING * row.median_ns:
        remarks.append(f"! {quantity_text.number(faults)} page faults per call; {REMEDIES['page faults per call']}")
    for cause in row.causes:
        remedy = f"; {cause.remedy}" if cause.remedy else ""
        remarks.append(f"! its modes go with {cause.covariate} ({', '.join(cause.typical)}){remedy}")
    return remarks


def _resources(result: ContestantResult, row: Row) -> list[str]:
    """What the contestant took besides time; nothing for what was not asked for or could not be read."""
    return [*_feeding(row), *_smallest_memory(row), *_energy(result, row)]


def _feeding(row: Row) -> list[str]:
    rate, waited = row.pipeline_throughput_per_s, row.waited_share
    if rate is None or waited is None:
        return []
    shares = {name: share for name, share in row.stall_shares.items() if name not in (WORK, NO_CAUSE_TOLD)}
    causes = ", ".join(f"{name} {quantity_text.share(share)}" for name, share in shares.items())
    for_what = f" ({causes})" if causes else ""
    pipeline = row.settings.get("feed", "a pipeline")
    items, share = quantity_text.number(rate.value), quantity_text.share(waited.value)
    return [f"fed by {pipeline}: {items} items/s, waited {share} of the time{for_what}"]


def _smallest_memory(row: Row) -> list[str]:
    if row.min_memory_tries is None:
        return []
    tries = quantity_text.count(row.min_memory_tries, "fresh start")
    if row.min_memory_bytes is None or row.min_memory_resolution_bytes is None:
        return [f"smallest memory unknown after {tries}: {row.absent['min_memory_bytes']}"]
    size, finer = (quantity_text.size(each) for each in (row.min_memory_bytes, row.min_memory_resolution_bytes))
    return [f"runs in {size} ({row.min_memory_limit}, to {finer}, {tries})"]


def _energy(result: ContestantResult, row: Row) -> list[str]:
    if not any(process.energy for process in result.finished):
        return []
    if row.energy_per_item_j is None or row.mean_power_w is None:
        return [f"energy {row.absent['energy_per_item_j']}"]
    idle = f"idle {_quantity(row.idle_power_w, 'W')}" if row.idle_power_w else row.absent["idle_power_w"]
    energy, power = _quantity(row.energy_per_item_j, "J"), _quantity(row.mean_power_w, "W")
    return [f"energy {energy} per item, {power} while timed ({idle})"]


def _quantity(estimate: Estimate, unit: str) -> str:
    return quantity_text.quantity(estimate.value, unit, estimate.low, estimate.high)
