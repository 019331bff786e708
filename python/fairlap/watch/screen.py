"""The picture of this machine in the terminal: a row for each thing, with its last minute.

The last minute as a line of small bars, from 0 to the top. Where nothing was read there is no bar at all.

Where the parts of a row stand in a terminal of some width. What has no room is left out whole: first the notes,
then the bars; then groups and names go to lines of their own. A figure is never cut.
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
    """``points`` are moments and values; each bar is the mean of its part of the span.

    The parts lie on a grid of time, so that from one drawing to the next only the last bar changes, or all move on.
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


_NARROWEST_BESIDE_GROUP = 30  # of what is absent


class Screen:
    """The readings as they are when it is drawn. ``live`` is a picture that is drawn again and again: it is cut to
    the terminal's height, and an absence is one line."""

    def __init__(self, readings: ReadingsNow, *, live: bool, bars: bool = True) -> None:
        self._readings = readings
        self._live = live
        self._bars = bars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_writable_row(row, options) for row in rows_of(self._readings.series)]
        title, lines = self._title(options), self._lines(rows, options)
        absent = _absent(self._readings.absences(), options, shortly=self._live)
        if self._live and len(title) + len(lines) + len(absent) > options.size.height:
            lines = self._lines([row for row in rows if row.essential], options)
        yield Group(*title, *lines, *absent)

    def _title(self, options: ConsoleOptions) -> list[Text]:
        """As many of its parts as there is room for."""
        what = f"every {self._readings.interval_s:g} s, the last minute" if self._bars else "one reading"
        parts = ["This machine", time.strftime("%H:%M:%S"), what]
        while parts and len(" · ".join(parts)) > options.max_width:
            parts.pop()
        return [_line((_writable(" · ".join(parts), options), "dim"))] if parts else []

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
        figure = row.text.rjust(layout.figure) if layout.name else row.text
        parts.append((figure, "bold yellow" if row.alarming else "bold"))
        if layout.bars:
            signs = PLAIN if options.ascii_only else BLOCKS
            bars = sparkline(row.points, layout.bars, self._readings.taken_s, HISTORY_S, row.top, signs)
            parts += [(" ", ""), (bars.ljust(layout.bars), "yellow" if row.alarming else "cyan")]
        if layout.note:
            parts += [(" ", ""), (_cut(row.note, layout.note, options), "dim")]
        return _line(*parts)


def _left_out(rows: Sequence[Row], width: int) -> list[Text]:
    """Rows whose figure is longer than a line."""
    if not rows:
        return []
    needed = max(len(row.text) for row in rows)
    told = f"{len(rows)} rows need {needed} columns" if len(rows) > 1 else f"1 row needs {needed} columns"
    return [_line((part, "dim")) for part in textwrap.wrap(told, width)]


def _absent(absences: Sequence[Absence], options: ConsoleOptions, *, shortly: bool) -> list[RenderableType]:
    """A line for each when told shortly; otherwise whole."""
    beside = options.max_width >= GROUP + 1 + _NARROWEST_BESIDE_GROUP
    heading = Text("absent", style="bold", overflow="fold")
    lines: list[RenderableType] = [heading] if absences and not beside else []
    for number, absence in enumerate(absences):
        told = Text(_writable(absence.shortly, options), overflow="fold")
        told.append(_writable(f": {absence.why}", options), style="dim")
        width = options.max_width - (GROUP + 1 if beside else 0)
        if shortly and len(told.plain) > width:
            cut = _cut(told.plain, width, options)
            told = Text.assemble(cut[: len(absence.shortly)], (cut[len(absence.shortly) :], "dim"))
        line = Table.grid(padding=(0, 1, 0, 0))
        if beside:
            line.add_column(width=GROUP)
            line.add_column(width=width)
            line.add_row(heading if number == 0 else "", told)
        lines.append(line if beside else told)
    return lines


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="crop")


def _writable_row(row: Row, options: ConsoleOptions) -> Row:
    return replace(
        row,
        group=_writable(row.group, options),
        name=_writable(row.name, options),
        text=_writable(row.text, options),
        note=_writable(row.note, options),
    )


def _writable(text: str, options: ConsoleOptions) -> str:
    """Without signs that the output's encoding does not have."""
    if not options.ascii_only:
        return text
    return text.replace("–", "-").replace("·", "-").replace("°", "").encode("ascii", "replace").decode()


def _cut(text: str, width: int, options: ConsoleOptions) -> str:
    """Words that are too long end with a sign that something follows."""
    sign = "..." if options.ascii_only else "…"
    return text if len(text) <= width else text[: max(width - len(sign), 0)] + sign[:width]
