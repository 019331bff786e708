"""Sections of text on the page: the tables of each, and its notes below them."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.render.document import Section
from fairlap.render.encoders.page import wide_table
from fairlap.render.report.markup import Markup, tag


def section_tables(sections: Sequence[Section], *, by_contestant: bool = False) -> list[Markup]:
    """Make one for each section. ``by_contestant``: the first cell of each row is its contestant, for the filter."""
    return [
        tag(
            "div",
            (wide_table(each, [row[0] for row in each.rows] if by_contestant else ()) for each in section.tables),
            (tag("p", note, class_="caption") for note in section.notes),
        )
        for section in sections
    ]
