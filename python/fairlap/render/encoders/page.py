"""Documents as one HTML file without scripts. Every text is escaped; nothing is loaded and nothing runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from fairlap.render.charts.parts.look import DARK, LIGHT, Look
from fairlap.render.document import Document, Drawing, Picture, Section, Table
from fairlap.render.report.markup import Markup, breaking, scrolling, table, tag
from fairlap.render.report.still_page import still_page

_ABSENT = "–"
_BOUNDS = re.compile(r"\[[^\[\]]*\]")


def page_of(document: Document) -> bytes:
    facts = tag("div", (tag("p", fact) for fact in document.facts), class_="note")
    return still_page(document.title, facts, map(_section, document.sections))


def _section(section: Section) -> Markup | str:
    """Nothing where there is nothing but the title."""
    if not (section.tables or section.notes or section.picture):
        return ""
    tables = map(wide_table, section.tables)
    return tag("section", tag("h2", section.title), _figure(section.picture), tables, _list(section.notes))


def wide_table(shown: Table, contestants: Sequence[str] = ()) -> Markup:
    """Let a table scroll where it is wider than the page. Names break between their parts, figures do not.

    ``contestants`` has the contestant of each row, for a page with a filter.
    """
    rows = [{head: _cell(cell) for head, cell in zip(shown.heads, row, strict=True)} for row in shown.rows]
    return scrolling(shown.caption, table(shown.caption, shown.heads, rows, "cards pairs", contestants))


def _cell(text: str) -> Markup:
    if not text[:1].isdecimal():
        return tag("span", breaking(text or _ABSENT))
    bounded = _BOUNDS.sub(lambda found: found[0].replace(" ", "\u00a0"), text)
    return tag("span", bounded, class_=None if " " in text else "whole")  # dates have hyphens, where lines would break


def _list(notes: Sequence[str]) -> Markup | None:
    return tag("ul", (tag("li", note) for note in notes), class_="caption") if notes else None


def _figure(picture: Picture | None) -> Markup | None:
    if picture is None:
        return None
    if picture.draw is None:
        return tag("p", picture.note, class_="caption")
    note = tag("figcaption", picture.note, class_="caption") if picture.note else ""
    drawn = tag(
        "picture",
        tag("source", srcset=_source(picture.draw, DARK), media="(prefers-color-scheme: dark)"),
        tag("img", src=_source(picture.draw, LIGHT), alt=picture.described, class_="still"),
    )
    return tag("figure", note, scrolling(picture.described, drawn))


def _source(draw: Drawing, look: Look) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(draw(look).encode()).decode()}"
