"""How contestants scale, as text: a table for each work that was raced at several scales, and what is projected."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.render.document import Section, Table
from fairlap.render.encoders.text import section_lines
from fairlap.render.judged import judged_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.scales.scaling_series import ScalingSeries
from fairlap.verdict import LatencyBandwidth

NOTE = (
    "Speed-up is over the smallest scale of the same contestant, within the same pass over the works; efficiency is "
    "its share of a linear one. Brackets are 95 % intervals. Contestants are compared with each other at one scale."
)
HEADS = ("contestant", "scale", "median", "speed-up", "efficiency", "exchange", "straggler")
_AGAINST_LINEAR = {"faster": "above linear", "slower": "below linear", "equivalent": "linear"}
_PROJECTED = 2  # times the largest scale
_SHORTEST_STEP_NS = 1.0


def scaling_lines(results: Results) -> list[str]:
    """Nothing where every work had one scale."""
    return [line for section in scaling_sections(results) for line in section_lines(section)]


def scaling_sections(results: Results) -> list[Section]:
    """One for each work, with what is projected as its notes."""
    sections = []
    for group in _groups(results):
        found, title = _rows_of(results, group), _title(group)
        shown = Table(title, HEADS, [cells_of(row) for row in found]).without_empty_columns(after=4)
        notes = [*absence_lines(found), *_projection_lines(group)]
        sections.append(Section(f"Scaling: {title}", [shown], notes))
    return sections


def _groups(results: Results) -> list[list[ScalingSeries]]:
    """All contestants of one work under one kind of conditions."""
    groups: dict[tuple[str, str], list[ScalingSeries]] = {}
    for each in results.scaling:
        groups.setdefault((each.title, each.conditions), []).append(each)
    return list(groups.values())


def _title(group: Sequence[ScalingSeries]) -> str:
    passes = quantity_text.count(max(each.passes for each in group), "pass")
    return f"{group[0].title} · {group[0].conditions}, {passes} over the scales"


def _rows_of(results: Results, group: Sequence[ScalingSeries]) -> list[Row]:
    """Of each contestant in turn, the smallest scale first."""
    found = [(each.contestant, results.under(point.work, each.conditions)) for each in group for point in each.points]
    return [
        row
        for contestant, work_result in found
        if work_result is not None
        for row in work_result.rows
        if row.contestant == contestant
    ]


def cells_of(row: Row) -> tuple[str, ...]:
    """Under the heads, empty where there is nothing; ``absence_lines`` has the reasons."""
    return (
        row.contestant,
        row.scale,
        judged_text(row) or row.outcome.replace("_", " "),
        speed_up_text(row),
        efficiency_text(row),
        exchange_text(row),
        straggler_text(row),
    )


def absence_lines(rows: Sequence[Row]) -> list[str]:
    """Why scales have no speed-up, a line for each contestant and reason."""
    scales: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.speed_up is None:
            scales.setdefault((row.contestant, row.absent["speed_up"]), []).append(row.scale)
    return [f"No speed-up of {name} on {', '.join(at)}: {why.rstrip('.')}." for (name, why), at in scales.items()]


def speed_up_text(row: Row) -> str:
    if row.speed_up is None:
        return ""
    text, bounds = quantity_text.ratio_and_bounds(row.speed_up.value, row.speed_up.low, row.speed_up.high)
    return " ".join(filter(None, [f"{text}×", bounds, row.speed_up_verdict]))


def efficiency_text(row: Row) -> str:
    word = row.efficiency_verdict or ""
    return " ".join(filter(None, [_share(row.efficiency), _AGAINST_LINEAR.get(word, word)]))


def exchange_text(row: Row) -> str:
    return "" if row.exchange_share is None else f"{_share(row.exchange_share)} of a step"


def straggler_text(row: Row) -> str:
    return "" if row.straggler is None else f"{row.straggler}, {_share(row.slowest_rank_excess)} longer"


def _projection_lines(group: Sequence[ScalingSeries]) -> list[str]:
    """Report what the laws predict, marked as such; a reason that holds for all contestants once.

    Contestants without any speed-up are left out, since the reason for that is the reason here too.
    """
    lines: list[str] = []
    reasons: dict[str, list[str]] = {}
    measured = [each for each in group if any(point.speed_up for point in each.points)]
    for each in measured:
        projection = each.projection
        if projection.law is None:
            reasons.setdefault(projection.why, []).append(each.contestant)
        else:
            size = _PROJECTED * max(getattr(point.scale, projection.axis) for point in each.points)
            found = projection.law.speed_up(size)
            speed_up = quantity_text.ratio_interval(found.value, found.low, found.high)
            law = ", ".join(
                f"{name} {_bounded(value.value, value.low, value.high)}"
                for name, value in (("sigma", projection.law.sigma), ("kappa", projection.law.kappa))
            )
            at = f"at {size} {projection.axis}, {speed_up} times as fast as at its smallest scale ({law})"
            lines.append(f"Projected, not measured: {each.contestant} {at}.")
        if projection.exchange is not None:
            lines.append(f"Fitted: exchange of {each.contestant} in a ring, {_exchange_law(projection.exchange)}.")
    for why, names in reasons.items():
        whose = "" if len(names) == len(measured) else f" of {', '.join(names)}"
        lines.append(f"No projection{whose}: {why}.")
    return lines


def _exchange_law(law: LatencyBandwidth) -> str:
    alpha, beta = law.alpha_ns, law.beta_bytes_per_s.value
    seen = alpha.value >= _SHORTEST_STEP_NS
    step = quantity_text.duration_interval(alpha.value, alpha.low, alpha.high) if seen else "no latency to be seen"
    bytes_ = "bytes cost nothing to be seen" if math.isinf(beta) else f"{quantity_text.size(beta)}/s"
    return f"{step} for each step, {bytes_}"


def _share(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return quantity_text.share(estimate.value)
    low, high = map(quantity_text.share, (estimate.low, estimate.high))
    return f"{quantity_text.share(estimate.value)} [{low}, {high}]"


def _bounded(value: float, low: float, high: float) -> str:
    return f"{quantity_text.number(value)} [{quantity_text.number(low)}, {quantity_text.number(high)}]"
