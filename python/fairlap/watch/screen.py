"""The picture of this machine in the terminal: a row for each thing, with its last minute."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, OverflowMethod, RenderResult
from rich.table import Table
from rich.text import Text

from fairlap.watch.absence import Absence
from fairlap.watch.readings_now import ReadingsNow
from fairlap.watch.rows import Row, rows_of
from fairlap.watch.series import HISTORY_S
from fairlap.watch.sparkline import BLOCKS, PLAIN, sparkline

_GROUP, _NAME, _TEXT, _NOTE = 9, 15, 18, 15  # widths of columns
_BETWEEN_COLUMNS = 4
_WIDEST_LINE = 60


class Screen:
    """The readings as they are when it is drawn. ``live`` is a picture that is drawn again and again: it is cut to
    the terminal, and an absence is one line."""

    def __init__(self, readings: ReadingsNow, *, live: bool, bars: bool = True) -> None:
        self._readings = readings
        self._live = live
        self._bars = bars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = rows_of(self._readings.series)
        absences = self._readings.absences()
        if self._live and 1 + len(rows) + len(absences) > options.size.height:
            rows = [row for row in rows if row.essential]
        yield Group(self._title(options), self._table(rows, options), _absent(absences, options, shortly=self._live))

    def _title(self, options: ConsoleOptions) -> Text:
        what = f"every {self._readings.interval_s:g} s, the last minute" if self._bars else "one reading"
        text = f"This machine · {time.strftime('%H:%M:%S')} · {what}"
        return Text(_writable(text, options), style="dim", no_wrap=True, overflow="crop")

    def _table(self, rows: Sequence[Row], options: ConsoleOptions) -> Table:
        width = min(options.max_width - _GROUP - _NAME - _TEXT - _NOTE - _BETWEEN_COLUMNS, _WIDEST_LINE)
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=_GROUP, no_wrap=True, overflow="crop")
        table.add_column(width=_NAME, no_wrap=True, overflow="crop")
        table.add_column(width=_TEXT, no_wrap=True, overflow="crop", justify="right")
        if self._bars:
            table.add_column(width=max(width, 0), no_wrap=True, overflow="crop")
            table.add_column(width=_NOTE, no_wrap=True, overflow="crop")
        now_s = self._readings.taken_s
        group = ""
        for row in rows:
            table.add_row(*self._cells(row, row.group if row.group != group else "", max(width, 0), now_s, options))
            group = row.group
        return table

    def _cells(self, row: Row, group: str, width: int, now_s: float, options: ConsoleOptions) -> list[Text]:
        cells = [
            Text(group, style="bold"),
            Text(_writable(row.name, options)),
            Text(_writable(row.text, options), style="bold yellow" if row.alarming else "bold"),
        ]
        if not self._bars:
            return cells
        line = sparkline(row.points, width, now_s, HISTORY_S, row.top, PLAIN if options.ascii_only else BLOCKS)
        return [
            *cells,
            Text(line, style="yellow" if row.alarming else "cyan"),
            Text(_writable(row.note, options), style="dim"),
        ]


def _absent(absences: Sequence[Absence], options: ConsoleOptions, *, shortly: bool) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=_GROUP, no_wrap=True)
    ending: OverflowMethod = "crop" if options.ascii_only else "ellipsis"
    table.add_column(
        width=max(options.max_width - _GROUP - 1, 1), no_wrap=shortly, overflow=ending if shortly else "fold"
    )
    for number, absence in enumerate(absences):
        what, why = absence.shortly, _writable(absence.why, options)
        told = Text.assemble(_writable(what, options), (": " + why, "dim"))
        table.add_row(Text("absent" if number == 0 else "", style="bold"), told)
    return table


def _writable(text: str, options: ConsoleOptions) -> str:
    """Without signs that the output's encoding does not have."""
    if not options.ascii_only:
        return text
    return text.replace("–", "-").replace("·", "-").replace("°", "").encode("ascii", "replace").decode()
