"""``fairlap judge``: keep, discard or undecided, for loops that change code and measure it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import Command
from fairlap.cli.options.benchmark_options import INPUTS, ONLY, REPORTED, SUITE, benchmark_of
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, PASS_ENV, SECONDS, WAIT
from fairlap.cli.options.values import DURATION, FILE, Choice, Parsed
from fairlap.cli.output import print_result
from fairlap.cli.races.deciding import decided

if TYPE_CHECKING:
    from fairlap.judgement.judgement import BenchmarkSpeedup, Judgement, Regret

_FOLDER = click.Path(file_okay=False, path_type=Path)
_SECTIONS = {
    "What to judge": "base change call command suite only inputs reference reported same-output build tests pass-env",
    "What to keep": "quantity gain ledger confirm",
    "How long": "budget blocks seconds threads wait",
    "Output": "output json q quiet",
    "Help": "h help",
}

_MOST_LEFT_OUT = 10


def _gain(text: str) -> float:
    from fairlap.judgement.judge_request import share_of_gain

    return share_of_gain(text)


@click.command(
    "judge",
    cls=Command,
    sections=_SECTIONS,
    essential="base change call command suite inputs tests gain ledger confirm budget json",
    examples="""
fairlap judge --base main --change candidate --call my_package.hot:parse --tests 'pytest -q' --ledger tries.json
    Keep the change if its tests pass and it is shown to be faster.
fairlap judge --ledger tries.json --confirm
    Race the last change that was kept against the code that the search began with.
""",
)
@click.option("--base", type=_FOLDER, metavar="FOLDER", help="Code that the change is compared with.")
@click.option("--change", type=_FOLDER, metavar="FOLDER", help="Code to judge.")
@click.option("--call", default="", metavar="MODULE:CALLABLE", help="Python callable to race, imported from both.")
@click.option("--command", "run", default="", metavar="COMMAND", help="Program to race, run in both.")
@click.option("--suite", type=SUITE, metavar="SUITE.toml|BENCHMARKS", help="Race all benchmarks of a suite instead.")
@ONLY
@INPUTS
@click.option(
    "--reference", default="", metavar="MODULE:CALLABLE", help="What answers right.  [default: the base's callable]"
)
@REPORTED
@click.option("--same-output", is_flag=True, help="Discard a change whose command prints something else.")
@click.option("--build", default="", metavar="SHELL", help="Shell command that builds each folder first: 'make'.")
@click.option("--tests", default="", metavar="SHELL", help="Shell command that must succeed in the change.")
@PASS_ENV
@click.option(
    "--quantity",
    type=Choice(["wall", "cpu_time", "memory_peak"]),
    metavar="QUANTITY",
    help="Keep less wall, cpu_time or memory_peak.  [default: wall]",
)
@click.option(
    "--gain",
    type=Parsed(_gain, "share"),
    help="Keep only what gains more.  [default: 0%; memory_peak 1%]",
)
@click.option("--ledger", type=FILE, metavar="FILE.json", help="Spend one 5 % error over all tries of a search.")
@click.option("--confirm", is_flag=True, help="Race the last kept change of --ledger against the first base.")
@click.option("--budget", type=DURATION, help="Race until decided, or for DURATION.  [default: 60s to 150s]")
@click.option("--blocks", type=click.IntRange(min=1), help="Run a fixed number of blocks.")
@SECONDS
@click.option("--threads", type=int, help="Threads of either side.  [default: all cores]")
@WAIT
@OUTPUT_JSON
@JSON
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(output: tuple[Path, ...], as_json: bool, quiet: bool, wait: bool | None, **given: Any) -> None:
    """Race a change of code against its base, and decide whether to keep it.

    Both are folders, raced in turns in fresh processes. A change is kept when it is shown to be faster by more than
    --gain, and discarded when its tests fail, it answers wrong, or it is shown not to be.

    A loop tries many changes, and at 5 % each some would be kept by luck. With --ledger all tries share one 5 %,
    however many there are.

    Exit status: 0 keep, 1 discard, 3 undecided, 2 when nothing could be judged, 130 after Ctrl-C.
    """
    from fairlap.cli.options.output_options import require_writable, writable
    from fairlap.judgement.judge import judge_request
    from fairlap.judgement.judge_request import JudgeRequest

    writable(output, only=(".json",))
    if given["ledger"] is not None:
        require_writable(given["ledger"])
    benchmark = benchmark_of(given)
    request = JudgeRequest(benchmark=benchmark, wait=wait is not False, **given)
    found = decided(partial(judge_request, request), quiet=quiet)
    print_result(found, _text(found), as_json=as_json, output=output)
    raise SystemExit(found.exit_status)


def _text(found: Judgement) -> str:
    from fairlap.request.work_title import NOT_COMPARED

    lines = [f"{found.decision}: {found.message}{f' [{found.code}]' if found.code else ''}"]
    lines += [_benchmark_text(each) for each in found.benchmarks]
    lines += [f"trade: {each}" for each in found.trades]
    lines += [f"  {each.name}: left out: {each.why}" for each in found.left_out[:_MOST_LEFT_OUT]]
    if (more := len(found.left_out) - _MOST_LEFT_OUT) > 0:
        lines.append(f"  and {more} more left out; --json has them")
    lines += [NOT_COMPARED] if found.answers_compared is False else []
    if found.output:
        lines.append(found.output)
    if found.next is not None and found.next.advice:
        lines.append(f"next: {found.next.advice}")
    if found.try_number is not None:
        spent = f", at a level of {found.level:.2g}" if found.level else ""
        lines.append(f"try {found.try_number} of this ledger{spent}")
    if found.regret is not None:
        lines.append(_regret_text(found.regret))
    return "\n".join(lines)


def _benchmark_text(each: BenchmarkSpeedup) -> str:
    from fairlap import quantity_text

    speedup = quantity_text.ratio_interval(each.speedup, each.interval.low, each.interval.high)
    slower = f", slower by more than {quantity_text.share(each.max_slowdown, 3)}" if each.slower else ""
    return f"  {each.name}: speedup {speedup}{slower}"


def _regret_text(bound: Regret) -> str:
    from fairlap import quantity_text

    code = "the kept code" if bound.kept else "no change is kept; the base"
    more = f"; {bound.unbounded} more ended too soon to be bounded" if bound.unbounded else ""
    if not bound.tried:
        ended = quantity_text.count(bound.unbounded, "change")
        return f"no bound on how much faster a change may be than the base: {ended} ended too soon"
    sure = f"({quantity_text.share(1 - bound.level, 3)} confidence)"
    among = f"the {quantity_text.count(bound.tried, 'change')} tried"
    if not bound.at_most:
        return f"{code} is the fastest of {among} {sure}{more}"
    return f"{code} is at most {quantity_text.share(bound.at_most)} slower than the fastest of {among} {sure}{more}"
