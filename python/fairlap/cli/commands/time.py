"""``fairlap time MODULE:CALLABLE...``: time anything that can be imported, or compare several in one process.

With ``--device`` they are timed on a GPU, and so are kernels of PTX and cubin files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.device_options import device_options, device_timing_of, timed_on_device, with_kernels
from fairlap.cli.help import Command
from fairlap.cli.output import print_result
from fairlap.cli.output_options import JSON, OUTPUT_JSON
from fairlap.cli.untrusted_options import (
    SECTION,
    refuse_without_untrusted,
    untrusted_comparison,
    untrusted_options,
)
from fairlap.cli.values import DURATION, NAME, NUMBER_OR_AUTO, SHARE
from fairlap.errors import InvalidRequest
from fairlap.frameworks.python_callable import imported_callable
from fairlap.request.units import require_within_a_day

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement
    from fairlap.scenarios.callables.device_timing import Kernels
    from fairlap.scenarios.callables.result import InProcessComparison

INTERRUPTED = 130


_OF_ONE = ("samples", "warmup")
_SECTIONS = {
    "How to time": "seconds target clock calls-per-sample keep-gc",
    "One callable": "samples warmup",
    "Several callables": "budget only-winner blocks margin baseline seed",
    "Callables that you do not trust": SECTION,
    "On a GPU": "device stream method cache graph grid block shared args",
    "Results": "output json raw",
    "Help": "h help",
}
_OF_SEVERAL = ("budget", "only_winner", "blocks", "margin", "baseline", "seed")


@click.command(
    "time",
    cls=Command,
    sections=_SECTIONS,
    essential="seconds target warmup calls-per-sample budget margin baseline device output json",
    examples="""
fairlap time time:time_ns
    Time one callable.
fairlap time my_kernels:old my_kernels:new
    Compare two, in turns, until it is decided.
fairlap time my_kernels:softmax --device cuda:0
    Time on a GPU.
fairlap time theirs.py:kernel mine.py:kernel --untrusted --reference task.py:reference --inputs task.py:draw
    Judge code that you do not trust.
""",
)
@click.argument("names", metavar="MODULE:CALLABLE...", nargs=-1, required=True)
@click.option(
    "--seconds",
    type=DURATION,
    help="Stop after DURATION (1s); several: in each block.",
)
@click.option("--target", type=SHARE, help="Stop when the interval, or every interval, is within ±SHARE.")
@click.option("--clock", default="auto", help='The clock: "auto", "tsc" or "cntvct", "monotonic_raw".')
@click.option("--keep-gc", is_flag=True, help="Keep the garbage collector running.")
@click.option("--samples", type=int, help="One callable: stop after this many samples.")
@click.option(
    "--warmup",
    type=NUMBER_OR_AUTO,
    metavar="N",
    help="One callable: calls before the first sample.  [default: auto]",
)
@click.option(
    "--calls",
    "--calls-per-sample",
    "calls_per_sample",
    type=NUMBER_OR_AUTO,
    metavar="N",
    help="Calls in one sample.  [default: auto]",
)
@click.option(
    "--budget",
    type=DURATION,
    help="Several: until all is decided, or for DURATION.  [default: 2s]",
)
@click.option("--only-winner", is_flag=True, default=None, help="Several: compare only the fastest with the others.")
@click.option("--blocks", type=int, help="Several: run a fixed number of blocks.")
@click.option("--margin", type=SHARE, help="Several: equivalent when within ±SHARE.  [default: 0.5%]")
@click.option("--baseline", metavar="NAME", type=NAME, help="Several: baseline callable.  [default: the fastest]")
@click.option("--seed", type=click.IntRange(min=0), help="Several: draw orders from this seed.  [default: random]")
@untrusted_options
@device_options
@OUTPUT_JSON
@JSON
@click.option("--raw", is_flag=True, help="Include every sample, or every block's medians, in the JSON.")
def command(
    names: tuple[str, ...],
    keep_gc: bool,
    output: tuple[Path, ...],
    as_json: bool,
    raw: bool,
    untrusted: bool,
    **given: Any,
) -> None:
    """Time one importable callable, or compare several in this process. They are called without arguments.

    With --device they are timed on a GPU. FILE.ptx:KERNEL and FILE.cubin:KERNEL are launched there with --grid, --block
    and --args.

    Several take turns in blocks of random order until every comparison is decided, or the budget is spent.
    (`fairlap compare` compares in separate processes instead.)

    With --untrusted they are FILE.py:CALLABLE, called with what --inputs draws, and their answers are
    checked.

    Exit status: 2 when a callable raises; the samples before are printed. 130 after Ctrl-C. With --untrusted, 1 when
    every callable was excluded.
    """
    from fairlap.engine.measurement import CallableRaised

    if raw and not as_json and not output:
        raise InvalidRequest("--raw needs --json or -o FILE.json")
    require_within_a_day("--seconds", given["seconds"])
    several = len(names) > 1
    options = {name: _plain(value) for name, value in given.items() if value is not None}
    if untrusted:
        judged = untrusted_comparison(names, {**options, **({"keep_gc": True} if keep_gc else {})})
        print_result(judged.to_dict(raw=raw), str(judged), as_json=as_json, output=output)
        sys.exit(INTERRUPTED if judged.interrupted else 0 if judged.rows else 1)
    refuse_without_untrusted(options)
    on_device = device_timing_of(names, options)
    if misplaced := [name for name in (_OF_ONE if several else _OF_SEVERAL) if name in options]:
        when = "time one callable" if several else "compare several callables"
        raise InvalidRequest(f"--{misplaced[0].replace('_', '-')} applies only when you {when}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidRequest(f"{twice[0]} is given twice")
    raised: CallableRaised | None = None
    result: Measurement | InProcessComparison
    kernels: dict[str, Kernels] = {}
    options["pause_gc"] = not keep_gc
    try:
        with _stray_prints_on_stderr(as_json):
            if on_device is None:
                result = (_comparison if several else _measurement)(names, **options)
            else:
                result, kernels = timed_on_device(names, on_device, options)
    except CallableRaised as error:
        if several or not error.result.samples:
            raise
        raised, result = error, error.result
    document, text = with_kernels(result.to_dict(raw=raw), str(result), kernels)
    print_result(document, text, as_json=as_json, output=output)
    if raised is not None:
        raise raised
    if result.interrupted:
        sys.exit(INTERRUPTED)


def _plain(value: Any) -> Any:
    """Turn a share or a duration into a plain float."""
    return float(value) if isinstance(value, float) else value


def _measurement(names: tuple[str, ...], **options: Any) -> Measurement:
    from fairlap.engine import time_calls

    return time_calls(imported_callable(names[0]), name=names[0], **options)


def _comparison(names: tuple[str, ...], **options: Any) -> InProcessComparison:
    from fairlap.scenarios.callables.in_process import compare

    return compare({name: imported_callable(name) for name in names}, **options)


@contextmanager
def _stray_prints_on_stderr(wanted: bool) -> Iterator[None]:
    """Send what the timed callable prints to standard error, so that it does not mix with the JSON."""
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
