"""Where the parts of a row stand in a terminal of some width. What has no room is left out whole: first the notes,
then the bars; then groups and names go to lines of their own. A figure is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.watch.rows import Row

GROUP = 9
_NAME, _FIGURE, _NOTE = 15, 18, 15  # where there is room, so that nothing moves when a figure gets longer
_FEWEST_BARS, _MOST_BARS = 10, 60


@dataclass(frozen=True)
class Layout:
    """Widths; 0 is no column. A group, or a name, without a column has a line of its own above."""

    group: int
    name: int
    figure: int
    bars: int = 0
    note: int = 0


def layout_of(rows: Sequence[Row], width: int, *, bars: bool) -> Layout:
    group, name, figure = (
        max((len(part) for part in parts), default=0)
        for parts in ([row.group for row in rows], [row.name for row in rows], [row.text for row in rows])
    )
    steady = Layout(max(group, GROUP), max(name, _NAME), max(figure, _FIGURE))
    left = width - (steady.group + 1 + steady.name + 1 + steady.figure)
    if bars:
        # Words may be cut, with a sign that they are; so only figures ask for room.
        note = max([_NOTE, *(len(row.note) for row in rows if not row.note_in_words)])
        for width_of_note in (note, 0):
            room = left - 1 - (width_of_note + 1 if width_of_note else 0)
            if room >= _FEWEST_BARS:
                return Layout(steady.group, steady.name, steady.figure, min(room, _MOST_BARS), width_of_note)
    if left >= 0:
        return steady
    if group + 1 + name + 1 + figure <= width:
        return Layout(group, name, figure)
    if name + 1 + figure <= width:
        return Layout(0, name, figure)
    return Layout(0, 0, figure)
