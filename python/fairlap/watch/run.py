"""Interval after interval, in the form that was asked for, until the last one or until somebody ends it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import click

from fairlap.interrupts import heard_once, status_of
from fairlap.watch.readings import ReadingsNow

Ticks = Iterator[None]  # one at the end of each interval
Show = Callable[[ReadingsNow, Ticks], None]
_DUMB = ("dumb", "unknown")


def watch(interval_s: float, intervals: int | None, root: str, show: Show) -> None:
    with ReadingsNow(interval_s, root=root) as readings:
        show(readings, _ticks(readings, intervals))


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Ctrl-C is how a watch ends and no mishap: the usual exit status, and no word. So it is for SIGTERM, by which
    services are ended; a terminal is left as it was found."""
    with heard_once():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise SystemExit(status_of(interrupt)) from None


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in _DUMB


def show_live(readings: ReadingsNow, ticks: Ticks) -> None:
    """On a screen of its own; the last picture stays when it ends."""
    from rich.console import Console
    from rich.live import Live

    from fairlap.watch.screen import Screen

    console = Console()
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
        Console().print(Screen(readings, live=False, bars=False))


def print_lines(readings: ReadingsNow, ticks: Ticks) -> None:
    from fairlap.watch.lines import plain_line

    _say_what_is_absent(readings)
    for _ in ticks:
        click.echo(plain_line(readings))


def print_json(readings: ReadingsNow, ticks: Ticks) -> None:
    from fairlap.watch.lines import json_line

    for _ in ticks:
        click.echo(json_line(readings))


def serve_metrics(readings: ReadingsNow, ticks: Ticks, *, address: tuple[str, int]) -> None:
    from fairlap.watch.prometheus import Server

    with Server(readings, *address) as server:
        _say_what_is_absent(readings)
        click.echo(f"fairlap: Prometheus metrics at {server.url}; Ctrl-C ends it", err=True)
        for _ in ticks:
            pass


def _say_what_is_absent(readings: ReadingsNow) -> None:
    from fairlap.watch.lines import absent_lines

    for line in absent_lines(readings):
        click.echo(line, err=True)


def _ticks(readings: ReadingsNow, intervals: int | None) -> Ticks:
    """On a grid, so that lateness does not add up."""
    began_s = time.monotonic()
    for number in count(1) if intervals is None else range(1, intervals + 1):
        time.sleep(max(began_s + number * readings.interval_s - time.monotonic(), 0.0))
        readings.take_in()
        yield
