"""What a race showed, as text for a terminal.

What a contestant took beside time, in words under its line in a terminal, with the figures of its row. Nothing for
what was not asked or read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from fairlap import verdict
from fairlap.engine import digits
from fairlap.race.plan import Plan
from fairlap.request.work import Work, work_title
from fairlap.results.energy import energy_of
from fairlap.results.feeding import NO_CAUSE_TOLD, WORK, feeding_of, stall_shares_of
from fairlap.results.results import FAULTS, ContestantResult, Results, WorkResult
from fairlap.results.row import Estimate
from fairlap.verdict.modes import REMEDIES

_NS_OF_A_FAULT = 500.0  # about what the kernel takes to hand a page out; clearing it comes on top
_SHARE_WORTH_TELLING = 0.02


Beside = Callable[[Work, ContestantResult], Sequence[str]]
"""More lines under a contestant's own."""


def text_of(plan: Plan, results: Results, beside: Beside = lambda _work, _contestant: ()) -> str:
    """The whole answer: for each work what matters most first."""
    parts = []
    for work in plan.works:
        lines = _order_line(results, work.label)
        work_results = [work_result for work_result in results.work_results if work_result.work == work.label]
        for work_result in work_results:
            lines += _work_lines(plan, work_result, partial(beside, work))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _order_line(results: Results, work: str) -> list[str]:
    differs = results.order_differs(work)
    if differs is None:
        return []
    found, controlled = (" < ".join(order) for order in differs)
    return [
        "The order depends on the conditions; the causes stand below.",
        f"  as found:   {found}",
        f"  controlled: {controlled}",
    ]


def _work_lines(plan: Plan, work_result: WorkResult, beside: Callable[[ContestantResult], Sequence[str]]) -> list[str]:
    blocks = digits.counted(len(work_result.blocks.kept), "complete block")
    threads = digits.counted(plan.threads, "thread")
    lines = [
        f"{work_title(work_result.work, plan.data)} · {plan.device} ({threads}) · {work_result.conditions}, {blocks}"
    ]
    width = max(len(row.contestant) for row in work_result.rows)
    places = {place.contestant: place.label for place in work_result.standing.places} if work_result.standing else {}
    for row in work_result.rows:
        lines.append(f"  {places.get(row.contestant, '-'):>3} {row.contestant:<{width}}  {_row_text(work_result, row)}")
        lines += [f"      {' ' * width} {told}" for told in (*beside(row), *_remarks(row))]
    lines += [f"  {sentence}" for sentence in _sentences(work_result)]
    if work_result.blocks.told:
        lines.append(f"  {work_result.blocks.told}")
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
    return [verdict.sentence(each) for each in work_result.comparisons if first in (each.a, each.b)]


def _row_text(work_result: WorkResult, row: ContestantResult) -> str:
    if row.figure is None:
        return row.trouble
    if row.figure.value is None:
        listed = ", ".join(f"{digits.duration(m.value)} in {m.share:.0%} of processes" for m in row.figure.modes.modes)
        text = f"two modes: {listed}" if len(row.figure.modes.modes) == 2 else f"modes: {listed}"
    else:
        text = _with_interval(row.figure)
    times = f"  {_times_the_first(work_result, row):.2f}x"
    error = row.worst_relative_error
    return f"{text}{times}" + (f"  error {error:.1e}" if error is not None else "")


def _times_the_first(work_result: WorkResult, row: ContestantResult) -> float:
    """As the verdict tells it, from blocks in which both ran; where there is none, of the medians."""
    first = work_result.rows[0]
    for each in work_result.comparisons:
        if {each.a, each.b} == {first.contestant, row.contestant}:
            return each.ratio if each.a == row.contestant else each.reversed().ratio
    return row.median_ns / first.median_ns


def _with_interval(figure: verdict.ContestantFigure) -> str:
    value, low, high = figure.value or 0.0, figure.low or 0.0, figure.high or math.inf
    if low == 0.0 or math.isinf(high):  # fewer than six processes carry no interval
        return digits.duration(value)
    return digits.interval(value, low, high)


def _remarks(row: ContestantResult) -> list[str]:
    if not row.finished:
        return []
    remarks = []
    if row.figure is not None and row.trouble:
        remarks.append(f"! {row.trouble}")
    faults = row.median_of(FAULTS)
    if faults is not None and faults * _NS_OF_A_FAULT > _SHARE_WORTH_TELLING * row.median_ns:
        remarks.append(f"! {faults:,.0f} page faults per call; {REMEDIES['page faults per call']}")
    for cause in row.causes:
        remedy = f"; {cause.remedy}" if cause.remedy else ""
        remarks.append(f"! its modes go with {cause.covariate} ({', '.join(cause.typical)}){remedy}")
    return remarks


def resources_told(work: Work, result: ContestantResult) -> list[str]:
    return [*_feeding(result), *_smallest_memory(result), *_energy(work, result)]


def _feeding(result: ContestantResult) -> list[str]:
    told = feeding_of(result)
    rate, waited = (told[name].value for name in ("pipeline_throughput_per_s", "waited_share"))
    if rate is None or waited is None:
        return []
    pipeline = next(
        (process.in_force["feed"] for process in result.finished if "feed" in process.in_force), "a pipeline"
    )
    shares = {name: share for name, share in stall_shares_of(result).items() if name not in (WORK, NO_CAUSE_TOLD)}
    causes = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    for_what = f" ({causes})" if causes else ""
    return [f"fed by {pipeline}: {_count(rate.value)} items/s, waited {waited.value:.1%} of the time{for_what}"]


def _smallest_memory(result: ContestantResult) -> list[str]:
    found = result.smallest_memory
    if found is None:
        return []
    tries = digits.counted(found.tries, "fresh start")
    if found.bytes is None:
        return [f"smallest memory unknown after {tries}: {found.why}"]
    size, finer = (f"{each / 1e6:,.0f} MB" for each in (found.bytes, found.resolution_bytes))
    return [f"runs in {size} ({found.limit}, to {finer}, {tries})"]


def _energy(work: Work, result: ContestantResult) -> list[str]:
    if not any(process.energy for process in result.finished):
        return []
    told = energy_of(result, work)
    joules, watts, idle = (told[name] for name in ("energy_per_item_j", "mean_power_w", "idle_power_w"))
    if joules.value is None:
        return [f"energy {joules.why}"]
    beside = f"idle {_watts(idle.value)}" if idle.value is not None else f"idle power {idle.why}"
    return [f"energy {_joules(joules.value)} an item, {_watts(watts.value)} while timed ({beside})"]


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _joules(told: Estimate) -> str:
    return _scaled(told, ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")))


def _watts(told: Estimate) -> str:
    return _scaled(told, ((1.0, "W"),))


def _scaled(told: Estimate, units: tuple[tuple[float, str], ...]) -> str:
    size, unit = next((each for each in units if told.value >= each[0]), units[-1])
    ends = "" if told.low is None or told.high is None else f" [{told.low / size:.3g}, {told.high / size:.3g}]"
    return f"{told.value / size:.3g} {unit}{ends}"
