"""Runs side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.history.across.differing import Differing
from fairlap.history.across.lines import Line
from fairlap.printable import joined_lines
from fairlap.render.across.table import NO_CLAIM, by_work, columns_of, reasons, title

_ABSENT = "-"


def across_text(lines: Sequence[Line], differing: Sequence[Differing]) -> str:
    parts = [_work_text(work, own) for work, own in by_work(lines).items()]
    parts.append(differences_text(differing))
    return "\n\n".join(parts)


def _work_text(work: str, lines: Sequence[Line]) -> str:
    columns = columns_of(lines)
    rows = [["contestant", "run", "machine", *(column.head for column in columns)]]
    for line in lines:
        cells = [column.cell(line) or _ABSENT for column in columns]
        rows.append([title(line), line.run, line.machine, *cells])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    text = [work]
    text += [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    text += [f"  {line.contestant} in {line.run}: {line.message}" for line in lines if line.message]
    text += [
        f"  {line.contestant} in {line.run}: time and cost are both above those of {', '.join(line.dominated_by)}"
        for line in lines
        if line.dominated_by
    ]
    return joined_lines([*text, *(f"  {reason}" for reason in reasons(lines))])


def differences_text(differing: Sequence[Differing]) -> str:
    lines = [NO_CLAIM]
    for each in differing:
        values = ", ".join(f"{run}: {value}" for run, value in each.values.items())
        lines.append(f"  {each.about}, {each.what}: {values}")
    return joined_lines(lines if differing else [*lines, "  no known difference"])
