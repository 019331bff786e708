"""What is shown of runs, whatever it is written as: a title, facts, sections with tables, notes and pictures.

A room builds a document of its results; ``encoders`` has one encoder for each format.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from fairlap.printed_document import PrintedDocument
from fairlap.render.charts.parts.look import Look

Drawing = Callable[[Look], str]  # an SVG, drawn when a file or a page needs it


@dataclass(frozen=True)
class Table:
    """Texts under heads, empty where there is nothing. Every row has a text for every head."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def without_empty_columns(self, after: int) -> Table:
        """Leave out columns that have no text in any row; the first ones stay."""
        used = [place for place in range(len(self.heads)) if place < after or any(row[place] for row in self.rows)]
        rows = [[row[place] for place in used] for row in self.rows]
        return Table(self.caption, [self.heads[place] for place in used], rows)


@dataclass(frozen=True)
class Picture:
    """Only pages show it."""

    described: str  # to readers who do not see it
    draw: Drawing | None  # None where there is nothing to draw, and ``note`` is the reason
    note: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    picture: Picture | None = None


@dataclass(frozen=True)
class Records:
    """The same for programs: values, not texts. An estimate has its own column, one for ``_low`` and one for ``_high``.

    Names of columns are a promise to those who read the files.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    estimates: Collection[str] = ()  # columns that hold one, or None


@dataclass(frozen=True)
class Document:
    title: str
    sections: Sequence[Section]
    data: PrintedDocument  # what JSON holds
    records: Records
    draw: Drawing  # the picture that stands alone as a file
    facts: Sequence[str] = ()  # about all that follows
