"""``fairlap time MODULE:CALLABLE``: time anything that can be imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import click

from fairlap.cli.output import print_json
from fairlap.errors import CallableRaised, InvalidRequest
from fairlap.frameworks.python_callable import imported_callable

INTERRUPTED = 130


def number_or_auto(ctx: click.Context, param: click.Parameter, value: str) -> int | Literal["auto"]:
    """A whole number, or the word auto."""
    if value == "auto":
        return "auto"
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor auto") from None


@click.command("time")
@click.argument("target_name", metavar="MODULE:CALLABLE")
@click.option("--samples", type=int, help="Stop after this many samples.")
@click.option("--seconds", type=float, help="Stop after this long.  [default: 1]")
@click.option("--target", type=float, help="Stop when the interval's relative half-width is this small, e.g. 0.01.")
@click.option(
    "--warmup", metavar="N|auto", callback=number_or_auto, default="auto", help="Calls before the first sample."
)
@click.option(
    "--calls-per-sample", metavar="N|auto", callback=number_or_auto, default="auto", help="Calls in one sample."
)
@click.option("--clock", default="auto", help='The clock: "auto", "tsc" or "cntvct", "monotonic_raw".')
@click.option("--keep-gc", is_flag=True, help="Leave the garbage collector running.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--raw", is_flag=True, help="With --json: every sample too.")
def command(
    target_name: str,
    samples: int | None,
    seconds: float | None,
    target: float | None,
    warmup: int | Literal["auto"],
    calls_per_sample: int | Literal["auto"],
    clock: str,
    keep_gc: bool,
    as_json: bool,
    raw: bool,
) -> None:
    """Time one importable callable, called without arguments."""
    if raw and not as_json:
        raise InvalidRequest("--raw prints every sample as JSON and needs --json")
    from fairlap.engine import time_calls

    raised: CallableRaised | None = None
    try:
        with _stray_prints_on_stderr(as_json):
            result = time_calls(
                imported_callable(target_name),
                samples=samples,
                seconds=seconds,
                target=target,
                warmup=warmup,
                calls_per_sample=calls_per_sample,
                clock=clock,
                pause_gc=not keep_gc,
                name=target_name,
            )
    except CallableRaised as error:
        raised, result = error, error.result
    if result.samples or raised is None:
        print_json(result.to_dict(raw=raw)) if as_json else click.echo(str(result))
    if raised is not None:
        raise raised
    if result.interrupted:
        sys.exit(INTERRUPTED)


@contextmanager
def _stray_prints_on_stderr(wanted: bool) -> Iterator[None]:
    """What the timed callable prints must not get between a program and its JSON."""
    if not wanted:
        yield
        return
    import ctypes

    stdout = sys.stdout
    kept = os.dup(1)
    elsewhere = 2 if sys.stderr is not None else os.open(os.devnull, os.O_WRONLY)
    os.dup2(elsewhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C code printed waits in a buffer of its own
        sys.stdout = stdout
        stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
