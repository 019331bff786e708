"""``fairlap time MODULE:CALLABLE``: time anything that can be imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click

from fairlap.cli.output import print_result
from fairlap.cli.output_options import JSON, OUTPUT_JSON
from fairlap.cli.values import DURATION, NUMBER_OR_AUTO, SHARE
from fairlap.errors import CallableRaised, InvalidRequest
from fairlap.frameworks.python_callable import imported_callable

INTERRUPTED = 130


@click.command("time")
@click.argument("target_name", metavar="MODULE:CALLABLE")
@click.option("--samples", type=int, help="Stop after this many samples.")
@click.option("--seconds", type=DURATION, help="Stop after DURATION.  [default: 1s]")
@click.option("--target", type=SHARE, help="Stop when the interval is within ±SHARE.")
@click.option("--warmup", type=NUMBER_OR_AUTO, default="auto", show_default=True, help="Calls before the first sample.")
@click.option("--calls-per-sample", type=NUMBER_OR_AUTO, default="auto", show_default=True, help="Calls in one sample.")
@click.option("--clock", default="auto", help='The clock: "auto", "tsc" or "cntvct", "monotonic_raw".')
@click.option("--keep-gc", is_flag=True, help="Keep the garbage collector running.")
@OUTPUT_JSON
@JSON
@click.option("--raw", is_flag=True, help="Include every sample in the JSON.")
def command(
    target_name: str,
    samples: int | None,
    seconds: float | None,
    target: float | None,
    warmup: int | Literal["auto"],
    calls_per_sample: int | Literal["auto"],
    clock: str,
    keep_gc: bool,
    output: tuple[Path, ...],
    as_json: bool,
    raw: bool,
) -> None:
    """Time one importable callable, called without arguments.

    Exit status: 2 when the callable raises; the samples before are printed. 130 after Ctrl-C.
    """
    if raw and not as_json and not output:
        raise InvalidRequest("--raw needs --json or -o FILE.json")
    from fairlap.engine import time_calls

    raised: CallableRaised | None = None
    try:
        with _stray_prints_on_stderr(as_json):
            result = time_calls(
                imported_callable(target_name),
                samples=samples,
                seconds=None if seconds is None else float(seconds),
                target=None if target is None else float(target),
                warmup=warmup,
                calls_per_sample=calls_per_sample,
                clock=clock,
                pause_gc=not keep_gc,
                name=target_name,
            )
    except CallableRaised as error:
        raised, result = error, error.result
    if result.samples or raised is None:
        print_result(result.to_dict(raw=raw), str(result), as_json=as_json, output=output)
    if raised is not None:
        raise raised
    if result.interrupted:
        sys.exit(INTERRUPTED)


@contextmanager
def _stray_prints_on_stderr(wanted: bool) -> Iterator[None]:
    """What the timed callable prints must not mix with the JSON."""
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
        ctypes.CDLL(None).fflush(None)  # what C code printed waits in a separate buffer
        sys.stdout = stdout
        stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
