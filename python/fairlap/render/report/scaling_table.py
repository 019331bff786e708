"""The section of the page about several scales: a table for every work that was raced at them, and projections."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.scaling import (
    HEADS,
    absence_lines,
    cells_of,
    group_title,
    projection_lines,
    rows_of,
    scaling_groups,
)
from fairlap.results.results import Results
from fairlap.results.scaling_series import ScalingSeries

NOTE = (
    "Speed-up is over the smallest scale of the same contestant, within the same pass over the works; efficiency is "
    "its share of a linear one. Brackets are 95 % intervals. Contestants are compared with each other at one scale."
)


def scaling_tables(shown: Results) -> list[Markup]:
    return [_table(shown, group) for group in scaling_groups(shown)]


def _table(shown: Results, group: Sequence[ScalingSeries]) -> Markup:
    found = rows_of(shown, group)
    cells = [(row.contestant, cells_of(row)) for row in found]
    used = [place for place, _ in enumerate(HEADS) if any(row[place] for _, row in cells)]
    rows = [{HEADS[place]: row[place] for place in used if row[place]} for _, row in cells]
    heads, title = [HEADS[place] for place in used], group_title(group)
    return tag(
        "div",
        scrolling(title, table(title, heads, rows, "cards", [name for name, _ in cells])),
        (tag("p", line, class_="caption") for line in (*absence_lines(found), *projection_lines(group))),
    )
