"""``fairlap bisect``: which commit of a git history made it slower, or larger in memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from fairlap.cli.help import Command
from fairlap.cli.options.benchmark_options import INPUTS, REPORTED, benchmark_of
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, PASS_ENV, SECONDS, WAIT
from fairlap.cli.options.values import DURATION, SHARE
from fairlap.cli.output import print_result
from fairlap.cli.races.deciding import decided

_SECTIONS = {
    "What to search": "good bad repository prepare pass-env",
    "What to race": "call command quantity inputs reference reported same-output",
    "How long": "sure races budget blocks seconds threads wait",
    "Output": "output json q quiet",
    "Help": "h help",
}


@click.command(
    "bisect",
    cls=Command,
    sections=_SECTIONS,
    essential="good bad call command prepare quantity sure budget json",
    examples="""
fairlap bisect --good v1.2 --bad HEAD --call my_package.hot:parse
    Find the commit since v1.2 that made a callable slower.
fairlap bisect --good v1.2 --bad HEAD --command './benchmark --size 10' --prepare 'make -s'
    Build each commit that is raced; skip those that do not build.
""",
)
@click.option("--good", required=True, metavar="COMMIT", help="Ancestor of --bad that was fast enough.")
@click.option("--bad", required=True, metavar="COMMIT", help="Commit that is slower.")
@click.option(
    "--repository",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    metavar="FOLDER",
    help="A folder of the repository.  [default: the current one]",
)
@click.option("--prepare", default="", metavar="SHELL", help="Shell command that builds each commit in place: 'make'.")
@PASS_ENV
@click.option(
    "--call", default="", metavar="MODULE:CALLABLE", help="Python callable to race, imported from each commit."
)
@click.option("--command", "run", default="", metavar="COMMAND", help="Program to race, run in each commit.")
@click.option(
    "--quantity",
    type=click.Choice(["wall", "cpu_time", "memory_peak"]),
    default="wall",
    metavar="QUANTITY",
    help="Find what needs more wall, cpu_time or memory_peak.  [default: wall]",
)
@INPUTS
@click.option(
    "--reference", default="", metavar="MODULE:CALLABLE", help="What answers right.  [default: the good end's callable]"
)
@REPORTED
@click.option("--same-output", is_flag=True, help="Skip a commit whose command prints something else.")
@click.option("--sure", type=SHARE, default="99%", help="Stop at this probability of a commit.  [default: 99%]")
@click.option(
    "--races", type=click.IntRange(min=1), default=60, help="Run no more races than this in all.  [default: 60]"
)
@click.option("--budget", type=DURATION, help="Begin no race after DURATION.")
@click.option("--blocks", type=click.IntRange(min=2), help="Blocks of each race.  [default: 3 to 12, by the noise]")
@SECONDS
@click.option("--threads", type=click.IntRange(min=1), help="Threads of either side.  [default: all cores]")
@WAIT
@OUTPUT_JSON
@JSON
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(output: tuple[Path, ...], as_json: bool, quiet: bool, wait: bool | None, **given: Any) -> None:
    """Find the commit that made a program or a callable slower, between a good and a bad commit.

    Each step races the commit that tells most against the good end, in turns in fresh processes, and updates the
    probability of every commit. The search stops when one commit reaches --sure, and races it against its parent.
    Commits that do not build, fail or answer otherwise are skipped. Merges count as one commit.

    Your checkout is not touched. After Ctrl-C the same command goes on from what was raced.

    Exit status: 0 found, 1 the bad end is not shown to be slower, 3 undecided, or several commits are suspect because
    they cannot be raced, 2 an error, 130 after Ctrl-C.
    """
    from fairlap.bisect.bisect import bisect
    from fairlap.bisect.bisect_request import BisectRequest
    from fairlap.bisect.bisection_text import text_of
    from fairlap.cli.options.output_options import writable

    writable(output, only=(".json",))
    benchmark = benchmark_of(given)
    request = BisectRequest(benchmark=benchmark, wait=wait is not False, **given)
    found = decided(
        partial(bisect, request),
        quiet=quiet,
        interrupted="interrupted; what was raced is kept, and the same command goes on from it",
    )
    print_result(found, text_of(found), as_json=as_json, output=output)
    raise SystemExit(found.exit_status)
