"""Documents on a terminal: facts, then every section with its tables and notes indented. Pictures are left out."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.printable import joined_lines
from fairlap.render.document import Document, Section

_ABSENT = "-"


def text_of(document: Document) -> str:
    """Write it without the title, which repeats what the user has asked for."""
    parts = [document.facts, *map(section_lines, document.sections)]
    return "\n\n".join(joined_lines(lines) for lines in parts if lines)


def section_lines(section: Section) -> list[str]:
    """Nothing where there is only a picture."""
    lines: list[str] = []
    for table in section.tables:
        lines += [*([""] if lines else []), *aligned([table.heads, *table.rows])]
    lines += section.notes
    return [section.title, *(f"  {line}".rstrip() for line in lines)] if lines else []


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its longest cell."""
    cells = [[cell or _ABSENT for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
