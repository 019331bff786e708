"""Run ``fairlap watch``: interval after interval, in one of its forms, until the last one or a signal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, groupby

import click
import msgspec

from fairlap.interrupts import interrupted_once, status_of
from fairlap.printable import unfiltered
from fairlap.printed_document import PrintedDocument
from fairlap.watch.readings import Absence, ReadingsNow
from fairlap.watch.rows import rows_of
from fairlap.watch.series import Series

Ticks = Iterator[None]  # one at the end of each interval
Show = Callable[[ReadingsNow, Ticks], None]
_DUMB = ("dumb", "unknown")


class SourceState(msgspec.Struct, frozen=True):
    present: bool
    absent_because: str  # empty where it is present


class Reading(msgspec.Struct, frozen=True):
    """In base units. A counter has a total and its increase, others a value; a number that is absent is null."""

    name: str
    labels: dict[str, str]
    total: float | msgspec.UnsetType | None = msgspec.UNSET
    per_second: float | msgspec.UnsetType | None = msgspec.UNSET
    value: float | msgspec.UnsetType | None = msgspec.UNSET
    absent_because: str | msgspec.UnsetType = msgspec.UNSET


class ReadingsOfInterval(PrintedDocument, frozen=True, tag="fairlap.readings/1"):
    time_s: float  # since 1970
    interval_s: float
    sources: dict[str, SourceState]
    readings: list[Reading]
    absent: list[Absence]


def watch(interval_s: float, intervals: int | None, root: str, show: Show) -> None:
    with ReadingsNow(interval_s, root=root) as readings:
        show(readings, _ticks(readings, intervals))


@contextmanager
def ended_in_order() -> Iterator[None]:
    """End a watch in the usual way on Ctrl-C and SIGTERM.

    Ctrl-C is the usual way to end a watch, and SIGTERM ends services: the usual exit status, no message, and the
    terminal is restored.
    """
    with interrupted_once():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise SystemExit(status_of(interrupt)) from None


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in _DUMB


def show_live(readings: ReadingsNow, ticks: Ticks) -> None:
    """On the alternate screen; the last picture stays at the end."""
    from rich.console import Console
    from rich.live import Live

    from fairlap.watch.screen import Screen

    console = Console(file=unfiltered(sys.stdout))
    try:
        picture = Screen(readings, live=True)
        with Live(picture, console=console, auto_refresh=False, screen=True) as live:
            for _ in ticks:
                live.update(picture, refresh=True)
    finally:
        console.print(Screen(readings, live=False))


def print_table(readings: ReadingsNow, ticks: Ticks) -> None:
    from rich.console import Console

    from fairlap.watch.screen import Screen

    for _ in ticks:
        Console(file=unfiltered(sys.stdout)).print(Screen(readings, live=False, bars=False))


def print_lines(readings: ReadingsNow, ticks: Ticks) -> None:
    _print_absences(readings)
    for _ in ticks:
        click.echo(plain_line(readings))


def print_json(readings: ReadingsNow, ticks: Ticks) -> None:
    for _ in ticks:
        click.echo(json_line(readings))


def serve_metrics(readings: ReadingsNow, ticks: Ticks, *, address: tuple[str, int]) -> None:
    from fairlap.watch.prometheus import Server

    with Server(readings, *address) as server:
        _print_absences(readings)
        for note in server.notes:
            click.echo(f"fairlap: {note}", err=True)
        for _ in ticks:
            pass


def plain_line(readings: ReadingsNow) -> str:
    parts = []
    for group, rows in groupby(rows_of(readings.series), key=lambda row: row.group):
        parts.append(f"{group}: " + ", ".join(f"{row.name} {row.text}" for row in rows))
    return f"{time.strftime('%H:%M:%S')}  " + ("; ".join(parts) or "no sensor could be read")


def json_line(readings: ReadingsNow) -> str:
    document = ReadingsOfInterval(
        round(time.time(), 3),
        readings.interval_s,
        {name: SourceState(not why, why) for name, why in readings.sources.items()},
        [_reading(series) for series in readings.series],
        list(readings.absences()),
    )
    return msgspec.json.encode(document).decode()


def _reading(series: Series) -> Reading:
    reading = Reading(series.metric.name, series.labels, absent_because=series.absent or msgspec.UNSET)
    if series.metric.counter:
        return msgspec.structs.replace(reading, total=series.value, per_second=series.per_second)
    return msgspec.structs.replace(reading, value=series.value)


def _print_absences(readings: ReadingsNow) -> None:
    for absence in readings.absences():
        click.echo(f"absent: {absence.what}: {absence.why}", err=True)


def _ticks(readings: ReadingsNow, intervals: int | None) -> Ticks:
    """On a fixed grid, so that delays do not add up."""
    began_s = time.monotonic()
    for number in count(1) if intervals is None else range(1, intervals + 1):
        time.sleep(max(began_s + number * readings.interval_s - time.monotonic(), 0.0))
        readings.end_interval()
        yield
