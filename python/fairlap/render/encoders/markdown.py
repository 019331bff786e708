"""Documents as Markdown for GitHub. Pictures are left out.

Words and figures are written as they are. A text that a reader could take for mark-up, a link or a mention is written
as code, and so is its whole column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fairlap.render.document import Document, Section, Table
from fairlap.render.files.markdown_table import as_code, table_line

_MOST_IN_A_CELL = 400
_MOST_IN_A_LINE = 600
_ABSENT = "-"
_WORD = r"[A-Za-zµ×]+[0-9]*(?:/[A-Za-z0-9]+|-[A-Za-z]+)*"
_NUMBER = r"[+-]?[0-9][0-9.,-]*(?:e[+-]?[0-9]+)?[A-Za-zµ×%]*(?:/[A-Za-z]+)*"
_PLAIN_WORD = rf"[(\[]?(?:{_WORD}|{_NUMBER})[)\].,;:]*|[=+/×·%-]|->"
_PLAIN = re.compile(rf"(?:{_PLAIN_WORD})(?: (?:{_PLAIN_WORD}))*")


def markdown_of(document: Document) -> str:
    parts = [f"### fairlap: {_plain(document.title)}", *map(_plain, document.facts)]
    parts += [part for section in document.sections for part in _section(section)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> list[str]:
    parts = ["\n".join(_table(table)) for table in section.tables]
    parts += _list(section.notes)
    return [f"#### {_plain(section.title)}", *parts] if parts else []


def _list(notes: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {as_code(note, _MOST_IN_A_LINE)}" for note in notes)] if notes else []


def _table(table: Table) -> Iterator[str]:
    columns = [_column(cells) for cells in zip(*table.rows, strict=True)]
    yield table_line([_plain(head) for head in table.heads])
    yield table_line(["---"] * len(table.heads))
    yield from map(table_line, zip(*columns, strict=True))


def _column(cells: Sequence[str]) -> list[str]:
    if all(map(_is_plain, filter(None, cells))):
        return [cell or _ABSENT for cell in cells]
    return [as_code(cell, _MOST_IN_A_CELL) or _ABSENT for cell in cells]


def _plain(text: str) -> str:
    return text if _is_plain(text) else as_code(text, _MOST_IN_A_LINE)


def _is_plain(text: str) -> bool:
    return len(text) <= _MOST_IN_A_CELL and _PLAIN.fullmatch(text) is not None
