"""The sections of the page about groups of items and corrupted data: a table for each metric."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.render.document import Section
from fairlap.render.encoders.page import wide_table
from fairlap.render.report.markup import Markup, tag


def slice_tables(sections: Sequence[Section]) -> list[Markup]:
    return [
        tag(
            "div",
            (wide_table(each) for each in section.tables),
            (tag("p", note, class_="caption") for note in section.notes),
        )
        for section in sections
    ]
