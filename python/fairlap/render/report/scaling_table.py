"""The section of the page about several scales: a table for every work that was raced at them, and projections."""

from __future__ import annotations

from fairlap.render.encoders.page import wide_table
from fairlap.render.report.markup import Markup, tag
from fairlap.render.text.scaling import scaling_sections
from fairlap.results.results import Results

NOTE = (
    "Speed-up is over the smallest scale of the same contestant, within the same pass over the works; efficiency is "
    "its share of a linear one. Brackets are 95 % intervals. Contestants are compared with each other at one scale."
)


def scaling_tables(shown: Results) -> list[Markup]:
    return [
        tag(
            "div",
            (wide_table(each, [row[0] for row in each.rows]) for each in section.tables),
            (tag("p", note, class_="caption") for note in section.notes),
        )
        for section in scaling_sections(shown)
    ]
