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

from fairlap.cli.hard_exits import hard_exits_raised
from fairlap.cli.help import Command
from fairlap.cli.options.answer_options import answer_options, arguments_of_one, with_imported
from fairlap.cli.options.axis_options import OUTPUT, axes_asked, axis_options, compared_over_axes, print_over_axes
from fairlap.cli.options.c_function_options import c_functions_asked
from fairlap.cli.options.device_options import device_options, device_timing_of, document_and_text, timed_on_device
from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.untrusted_options import UNTRUSTED, untrusted_comparison
from fairlap.cli.options.values import DURATION, NAME, NUMBER_OR_AUTO, SHARE
from fairlap.cli.output import print_result
from fairlap.cli.waiting_line import waiting_line
from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.imported_callable import imported_callable
from fairlap.interrupts import interrupted_once, status_of
from fairlap.request.units import require_within_a_day

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement
    from fairlap.scenarios.callables.device_timing import Kernels
    from fairlap.scenarios.callables.result import InProcessComparison

INTERRUPTED = 130
WRONG = 1


_OF_ONE = ("samples", "warmup")
_SECTIONS = {
    "How to time": "seconds target clock calls-per-sample keep-gc",
    "One callable": "samples warmup",
    "What is right": "inputs reference any-answers untrusted",
    "Several callables": "budget only-winner blocks margin baseline seed alone wait",
    "Over sizes, types and layouts": "axis bytes flops",
    "C functions and kernel files": "args",
    "On a GPU": "device stream method cache graph regime grid block shared",
    "Results": "output json raw",
    "Help": "h help",
}
_OF_SEVERAL = (
    *("reference", "any_answers", "budget", "only_winner", "blocks", "margin", "baseline", "seed", "alone", "wait"),
)


@click.command(
    "time",
    cls=Command,
    sections=_SECTIONS,
    essential="inputs reference seconds target warmup calls-per-sample budget margin baseline axis device output json",
    examples="""
fairlap time time:time_ns
    Time one callable.
fairlap time my_kernels:old my_kernels:new
    Compare two, in turns, until it is decided.
fairlap time my_kernels:old my_kernels:new --inputs my_kernels:draw --reference my_kernels:exact
    Check what they answer, too.
fairlap time my_kernels:old my_kernels:new --inputs my_kernels:draw --axis n=1K..1M:x2
    Compare them at 11 sizes.
fairlap time ./libold.so:dot ./libnew.so:dot --args 'f64[1000],f64[1000],i32:1000->f64'
    Compare functions of C libraries, without Python in between.
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
@click.option("--alone", is_flag=True, default=None, help="Several: not in rounds; warm each up before its turn.")
@click.option("--wait/--no-wait", default=None, help="Several: wait while another race uses the same cores.")
@answer_options
@UNTRUSTED
@axis_options
@device_options
@OUTPUT
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
    """Time one importable callable, or compare several in this process.

    They are called with what --inputs draws, without arguments otherwise. Answers are compared, with those of
    --reference or with each other; a callable that answers wrong is not ranked.

    With --axis they are compared at every value of every parameter of --inputs.

    LIBRARY.so:FUNCTION is a C function. It gets --args: numbers (i32:7, f64:0.5) and arrays of drawn numbers
    (f32[1000]), which are passed as pointers and not put back between calls. After -> comes what it returns. Arrays and
    what is returned are compared before several are timed.

    With --device they are timed on a GPU. FILE.ptx:KERNEL and FILE.cubin:KERNEL are launched there with --grid, --block
    and --args.

    Several take turns in blocks of random order until every comparison is decided, or the budget is spent.
    (`fairlap compare` compares in separate processes instead.)

    With --untrusted they are FILE.py:CALLABLE, each run in a sandbox and judged from outside of it.

    Exit status: 1 when an answer is wrong, or with --untrusted when every callable was excluded; 2 when a callable
    raises or a point of the axes fails; what was measured is printed. 130 after Ctrl-C.
    """
    from fairlap.engine.measurement import CallableRaised

    if raw and not as_json and not output:
        raise InvalidRequest("--raw needs --json or -o FILE.json")
    require_within_a_day("--seconds", given["seconds"])
    several = len(names) > 1
    options = {name: _plain(value) for name, value in given.items() if value is not None and value != ()}
    c_functions = c_functions_asked(names, options, untrusted=untrusted)
    if untrusted:
        with interrupted_once():  # whatever ends it, no process and no folder is left behind
            judged = untrusted_comparison(names, {**options, **({"keep_gc": True} if keep_gc else {})})
        print_result(judged.document(raw=raw), str(judged), as_json=as_json, output=output)
        sys.exit(status_of(None) if judged.interrupted else 0 if judged.rows else WRONG)
    over_axes = axes_asked(names, options, output)
    on_device = device_timing_of(names, options)
    _require_fitting(names, options)
    options["pause_gc"] = not keep_gc
    if over_axes is not None:
        with hard_exits_raised(), _stray_prints_on_stderr(as_json):
            compared = compared_over_axes(names, over_axes, on_device, options, quiet=as_json)
        sys.exit(print_over_axes(compared, over_axes, raw=raw, as_json=as_json))
    raised: CallableRaised | None = None
    result: Measurement | InProcessComparison
    kernels: dict[str, Kernels] = {}
    try:
        waiting = waiting_line(names, _expected_s(options, several=several))
        with hard_exits_raised(), _stray_prints_on_stderr(as_json), waiting:
            options = with_imported(options) if several else arguments_of_one(options)
            if c_functions is not None:
                result = c_functions.timed(options)
            elif on_device is None:
                result = (_comparison if several else _measurement)(names, **options)
            else:
                result, kernels = timed_on_device(names, on_device, options)
    except CallableRaised as error:
        if several or not error.result.samples:
            raise
        raised, result = error, error.result
    document, text = document_and_text(result, kernels, raw=raw)
    print_result(document, text, as_json=as_json, output=output)
    if raised is not None:
        raise raised
    sys.exit(_status_of(result))


def _expected_s(options: dict[str, Any], *, several: bool) -> float | None:
    """How long the timing takes where calls are short; None where that is not known."""
    from fairlap.engine.arguments import DEFAULT_SECONDS
    from fairlap.scenarios.callables.in_process import BUDGET_S

    if not several:
        return None if "samples" in options or "target" in options else options.get("seconds", DEFAULT_SECONDS)
    return None if "blocks" in options or "target" in options else options.get("budget", BUDGET_S)


def _require_fitting(names: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse a name that is given twice, and options for another number of callables."""
    several = len(names) > 1
    if misplaced := [name for name in (_OF_ONE if several else _OF_SEVERAL) if name in options]:
        when = "time one callable" if several else "compare several callables"
        raise InvalidRequest(f"--{misplaced[0].replace('_', '-')} applies only when you {when}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidRequest(f"{twice[0]} is given twice")


def _status_of(result: Measurement | InProcessComparison) -> int:
    from fairlap.engine.measurement import Measurement

    if result.interrupted:
        return INTERRUPTED
    return WRONG if not isinstance(result, Measurement) and result.answers.wrong else 0


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
