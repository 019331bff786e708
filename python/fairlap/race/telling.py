"""What a race showed, as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from fairlap import verdict
from fairlap.engine import digits
from fairlap.race.plan import Plan, Work, work_told
from fairlap.race.results import FAULTS, Contender, Heat, Results
from fairlap.verdict.mode_causes import REMEDIES

_NS_OF_A_FAULT = 500.0  # about what the kernel takes to hand a page out; clearing it comes on top
_SHARE_WORTH_TELLING = 0.02


Beside = Callable[[Work, Contender], Sequence[str]]
"""More lines under a contestant's own."""


def text_of(plan: Plan, results: Results, beside: Beside = lambda _work, _contender: ()) -> str:
    """The whole answer: for each work what matters most first."""
    parts = []
    for work in plan.works:
        lines = _order_line(results, work.label)
        heats = [heat for heat in results.heats if heat.work == work.label]
        for heat in heats:
            lines += _heat_lines(plan, heat, partial(beside, work))
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


def _heat_lines(plan: Plan, heat: Heat, beside: Callable[[Contender], Sequence[str]]) -> list[str]:
    blocks = digits.counted(len(heat.blocks.kept), "complete block")
    threads = digits.counted(plan.threads, "thread")
    lines = [f"{work_told(heat.work, plan.data)} · {plan.device} ({threads}) · {heat.conditions}, {blocks}"]
    width = max(len(row.contestant) for row in heat.rows)
    places = {place.contestant: place.label for place in heat.standing.places} if heat.standing else {}
    for row in heat.rows:
        lines.append(f"  {places.get(row.contestant, '-'):>3} {row.contestant:<{width}}  {_row_text(heat, row)}")
        lines += [f"      {' ' * width} {told}" for told in (*beside(row), *_remarks(row))]
    lines += [f"  {sentence}" for sentence in _sentences(heat)]
    if heat.blocks.told:
        lines.append(f"  {heat.blocks.told}")
    if heat.busy:
        lines.append(f"  ! {heat.busy}")
    if heat.why_no_verdict:
        lines.append(f"  no verdict: {heat.why_no_verdict}")
    return lines


def _sentences(heat: Heat) -> list[str]:
    """The pairs a reader asks for: the first against each of the others. All pairs are in the JSON."""
    if heat.standing is None:
        return []
    first = heat.standing.places[0].contestant
    return [verdict.sentence(each) for each in heat.comparisons if first in (each.a, each.b)]


def _row_text(heat: Heat, row: Contender) -> str:
    if row.figure is None:
        return row.trouble
    if row.figure.value is None:
        listed = ", ".join(f"{digits.duration(m.value)} in {m.share:.0%} of processes" for m in row.figure.modes.modes)
        text = f"two modes: {listed}" if len(row.figure.modes.modes) == 2 else f"modes: {listed}"
    else:
        text = _with_interval(row.figure)
    times = f"  {_times_the_first(heat, row):.2f}x"
    error = row.worst_relative_error
    return f"{text}{times}" + (f"  error {error:.1e}" if error is not None else "")


def _times_the_first(heat: Heat, row: Contender) -> float:
    """As the verdict tells it, from blocks in which both ran; where there is none, of the medians."""
    first = heat.rows[0]
    for each in heat.comparisons:
        if {each.a, each.b} == {first.contestant, row.contestant}:
            return each.ratio if each.a == row.contestant else each.reversed().ratio
    return row.median_ns / first.median_ns


def _with_interval(figure: verdict.ContestantFigure) -> str:
    value, low, high = figure.value or 0.0, figure.low or 0.0, figure.high or math.inf
    if low == 0.0 or math.isinf(high):  # fewer than six processes carry no interval
        return digits.duration(value)
    return digits.interval(value, low, high)


def _remarks(row: Contender) -> list[str]:
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
