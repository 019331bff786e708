"""The picture of this machine in the terminal: a row for each thing, with its last minute."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fairlap.watch.readings_now import ReadingsNow
from fairlap.watch.rows import Row, rows_of
from fairlap.watch.series import HISTORY_S
from fairlap.watch.sparkline import BLOCKS, PLAIN, sparkline

_WIDTHS = {"group": 9, "name": 15, "text": 16, "note": 15}
_GAPS = 4
_WIDEST_LINE = 60


class Screen:
    """What is shown of the readings as they are now; fits the width and, where it can, the height."""

    def __init__(self, readings: ReadingsNow, *, cut_to_height: bool) -> None:
        self._readings = readings
        self._cut_to_height = cut_to_height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = rows_of(self._readings.series)
        absent = _absent(self._readings.absences(), options.max_width)
        if self._cut_to_height and len(rows) + len(absent) + 1 > options.size.height:
            rows = [row for row in rows if row.essential]
        yield Group(_title(self._readings.interval_s, options), _table(rows, options), *absent)


def _title(interval_s: float, options: ConsoleOptions) -> Text:
    dot = "-" if options.ascii_only else "·"
    text = f"fairlap watch {dot} {time.strftime('%H:%M:%S')} {dot} every {interval_s:g} s, bars of the last minute"
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def _table(rows: Sequence[Row], options: ConsoleOptions) -> Table:
    width = max(min(options.max_width - sum(_WIDTHS.values()) - _GAPS, _WIDEST_LINE), 0)
    table = Table.grid(padding=(0, 1, 0, 0))
    overflow = "crop" if options.ascii_only else "ellipsis"
    for column, justify in (("group", "left"), ("name", "left"), ("text", "right"), ("line", "left"), ("note", "left")):
        table.add_column(
            width=_WIDTHS.get(column, width),
            no_wrap=True,
            overflow=overflow,  # type: ignore[arg-type]
            justify=justify,  # type: ignore[arg-type]
        )
    now_s = time.monotonic()
    bars = PLAIN if options.ascii_only else BLOCKS
    before = ""
    for row in rows:
        line = sparkline(row.points, width, now_s, HISTORY_S, row.top, bars)
        table.add_row(
            Text("" if row.group == before else row.group, style="bold"),
            Text(_plain(row.name, options)),
            Text(_plain(row.text, options), style="bold yellow" if row.alarming else "bold"),
            Text(line, style="yellow" if row.alarming else "cyan"),
            Text(_plain(row.note, options), style="dim"),
        )
        before = row.group
    return table


def _absent(absences: Sequence[tuple[str, str]], width: int) -> list[RenderableType]:
    """One line each, cut where it gets long; --json has them whole."""
    return [
        Text.assemble(("absent    ", "dim"), what.replace("_", " "), ("  " + why, "dim"), no_wrap=True, overflow="ellipsis")
        for what, why in absences
    ]


def _plain(text: str, options: ConsoleOptions) -> str:
    if not options.ascii_only:
        return text
    return text.replace("–", "-").replace("°", "").encode("ascii", "replace").decode()
