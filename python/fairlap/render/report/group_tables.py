"""The section of the page about groups of items: a table for each metric."""

from __future__ import annotations

from fairlap.render.encoders.page import wide_table
from fairlap.render.report.markup import Markup, tag
from fairlap.render.text.group_scores import NOTE as NOTE
from fairlap.render.text.group_scores import group_sections
from fairlap.results.results import Results


def group_tables(shown: Results) -> list[Markup]:
    return [
        tag(
            "div",
            (wide_table(each) for each in section.tables),
            (tag("p", note, class_="caption") for note in section.notes),
        )
        for section in group_sections(shown.rows)
    ]
