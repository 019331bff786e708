"""The readings in the terminal: a row for each thing, with its last minute as a line of small bars.

What does not fit into the terminal's width is left out whole: first the notes, then the bars; then groups and names
get separate lines. A number is never cut.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fairlap.watch.readings import Absence, ReadingsNow
from fairlap.watch.rows import Row, rows_of
from fairlap.watch.series import HISTORY_S

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-:=+*#"  # for outputs that cannot hold blocks


def sparkline(points: Iterable[tuple[float, float]], width: int, now: float, span: float, top: float, bars: str) -> str:
    """``points`` are times and values; each bar is the mean of its part of the span, and blank without a reading.

    The parts are on a fixed grid of time, so that between two drawings only the last bar changes, or all move by one.
    """
    if width <= 0:
        return ""
    part = span / width
    sums, counts = [0.0] * width, [0] * width
    for moment, value in points:
        place = width - 1 - int(now // part - moment // part)
        if 0 <= place < width:
            sums[place] += value
            counts[place] += 1
    return "".join(_bar(total / count / top, bars) if count else " " for total, count in zip(sums, counts, strict=True))


def _bar(share: float, bars: str) -> str:
    return bars[min(max(int(share * len(bars)), 0), len(bars) - 1)]


GROUP = 9
_NAME, _NUMBER, _NOTE = 15, 18, 15  # where there is room, so that nothing moves when a number gets longer
_FEWEST_BARS, _MOST_BARS = 10, 60


@dataclass(frozen=True)
class Layout:
    """Widths of columns; 0 is no column. A group or a name without a column has a separate line above."""

    group: int
    name: int
    number: int
    bars: int = 0
    note: int = 0


def layout_of(rows: Sequence[Row], width: int, *, bars: bool) -> Layout:
    group, name, number = (
        max((len(part) for part in parts), default=0)
        for parts in ([row.group for row in rows], [row.name for row in rows], [row.text for row in rows])
    )
    steady = Layout(max(group, GROUP), max(name, _NAME), max(number, _NUMBER))
    left = width - (steady.group + 1 + steady.name + 1 + steady.number)
    if bars:
        # Words may be cut, with an ellipsis, so only numbers need the room.
        note = max([_NOTE, *(len(row.note) for row in rows if not row.note_in_words)])
        for width_of_note in (note, 0):
            room = left - 1 - (width_of_note + 1 if width_of_note else 0)
            if room >= _FEWEST_BARS:
                return Layout(steady.group, steady.name, steady.number, min(room, _MOST_BARS), width_of_note)
    if left >= 0:
        return steady
    if group + 1 + name + 1 + number <= width:
        return Layout(group, name, number)
    if name + 1 + number <= width:
        return Layout(0, name, number)
    return Layout(0, 0, number)


_LEAST_ABSENCE_WIDTH = 30  # next to the group column


class Screen:
    """The readings at the time of drawing.

    ``live`` is drawn repeatedly: it is cut to the terminal's height, and each absence to one line.
    """

    def __init__(self, readings: ReadingsNow, *, live: bool, bars: bool = True) -> None:
        self._readings = readings
        self._live = live
        self._bars = bars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_encodable_row(row, options) for row in rows_of(self._readings.series)]
        title, lines = self._title(options), self._lines(rows, options)
        absent = _absent(self._readings.absences(), options, one_line=self._live)
        if self._live and len(title) + len(lines) + len(absent) > options.size.height:
            lines = self._lines([row for row in rows if row.essential], options)
        yield Group(*title, *lines, *absent)

    def _title(self, options: ConsoleOptions) -> list[Text]:
        """As many of its parts as fit."""
        what = f"every {self._readings.interval_s:g} s, the last minute" if self._bars else "one reading"
        parts = ["This machine", time.strftime("%H:%M:%S"), what]
        while parts and len(" · ".join(parts)) > options.max_width:
            parts.pop()
        return [_line((_encodable(" · ".join(parts), options), "dim"))] if parts else []

    def _lines(self, rows: Sequence[Row], options: ConsoleOptions) -> list[Text]:
        width = options.max_width
        layout = layout_of(rows, width, bars=self._bars)
        lines, group = [], ""
        shown = [row for row in rows if len(row.text) <= width]
        for row in shown:
            first = row.group if row.group != group else ""
            group = row.group
            if first and not layout.group:
                lines += [_line((part, "bold")) for part in textwrap.wrap(first, width)]
            if not layout.name:
                lines += [_line((part, "")) for part in textwrap.wrap(row.name, width)]
            lines.append(self._line(row, first, layout, options))
        return lines + _left_out([row for row in rows if row not in shown], width)

    def _line(self, row: Row, group: str, layout: Layout, options: ConsoleOptions) -> Text:
        parts = []
        if layout.group:
            parts += [(group.ljust(layout.group), "bold"), (" ", "")]
        if layout.name:
            parts += [(row.name.ljust(layout.name), ""), (" ", "")]
        number = row.text.rjust(layout.number) if layout.name else row.text
        parts.append((number, "bold yellow" if row.alarming else "bold"))
        if layout.bars:
            characters = PLAIN if options.ascii_only else BLOCKS
            bars = sparkline(row.points, layout.bars, self._readings.taken_s, HISTORY_S, row.top, characters)
            parts += [(" ", ""), (bars.ljust(layout.bars), "yellow" if row.alarming else "cyan")]
        if layout.note:
            parts += [(" ", ""), (_cut(row.note, layout.note, options), "dim")]
        return _line(*parts)


def _left_out(rows: Sequence[Row], width: int) -> list[Text]:
    """Rows whose number is longer than a line."""
    if not rows:
        return []
    needed = max(len(row.text) for row in rows)
    text = f"{len(rows)} rows need {needed} columns" if len(rows) > 1 else f"1 row needs {needed} columns"
    return [_line((part, "dim")) for part in textwrap.wrap(text, width)]


def _absent(absences: Sequence[Absence], options: ConsoleOptions, *, one_line: bool) -> list[RenderableType]:
    """One line for each, or whole."""
    in_columns = options.max_width >= GROUP + 1 + _LEAST_ABSENCE_WIDTH
    heading = Text("absent", style="bold", overflow="fold")
    lines: list[RenderableType] = [heading] if absences and not in_columns else []
    for number, absence in enumerate(absences):
        text = Text(_encodable(absence.summary, options), overflow="fold")
        text.append(_encodable(f": {absence.why}", options), style="dim")
        width = options.max_width - (GROUP + 1 if in_columns else 0)
        if one_line and len(text.plain) > width:
            cut = _cut(text.plain, width, options)
            text = Text.assemble(cut[: len(absence.summary)], (cut[len(absence.summary) :], "dim"))
        line = Table.grid(padding=(0, 1, 0, 0))
        if in_columns:
            line.add_column(width=GROUP)
            line.add_column(width=width)
            line.add_row(heading if number == 0 else "", text)
        lines.append(line if in_columns else text)
    return lines


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="crop")


def _encodable_row(row: Row, options: ConsoleOptions) -> Row:
    return replace(
        row,
        group=_encodable(row.group, options),
        name=_encodable(row.name, options),
        text=_encodable(row.text, options),
        note=_encodable(row.note, options),
    )


def _encodable(text: str, options: ConsoleOptions) -> str:
    """Without characters that the output's encoding lacks."""
    if not options.ascii_only:
        return text
    return text.replace("–", "-").replace("·", "-").replace("°", "").encode("ascii", "replace").decode()


def _cut(text: str, width: int, options: ConsoleOptions) -> str:
    """Words that are too long end with an ellipsis."""
    ellipsis = "..." if options.ascii_only else "…"
    return text if len(text) <= width else text[: max(width - len(ellipsis), 0)] + ellipsis[:width]
