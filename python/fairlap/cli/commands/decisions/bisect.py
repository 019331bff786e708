"""``fairlap bisect``: which commit of a git history, or which release, made it slower or larger in memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import Command
from fairlap.cli.options.benchmark_options import INPUTS, REPORTED, SUITE, benchmark_of
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, PASS_ENV, SECONDS, WAIT
from fairlap.cli.options.values import DURATION, SHARE, Choice
from fairlap.cli.output import print_result
from fairlap.cli.races.deciding import decided

if TYPE_CHECKING:
    from fairlap.bisection.bisect_request import RacedModel

_SECTIONS = {
    "What to search": "good bad releases repository prepare pass-env",
    "What to race": "call command suite only on batch mode precision shapes dims trust quantity inputs reference "
    "reported same-output",
    "How long": "sure races budget blocks seconds threads wait",
    "Output": "output json q quiet",
    "Help": "h help",
}
_WHEEL = ".whl"


@click.command(
    "bisect",
    cls=Command,
    sections=_SECTIONS,
    essential="good bad releases call command suite only on prepare quantity sure budget json",
    examples="""
fairlap bisect --good v1.2 --bad HEAD --call my_package.hot:parse
    Find the commit since v1.2 that made a callable slower.
fairlap bisect --good v1.2 --bad HEAD --command './benchmark --size 10' --prepare 'make -s'
    Build each commit that is raced; skip those that do not build.
fairlap bisect --good v1.2 --bad HEAD --suite benchmarks/ --only 'time_solve(n=100)'
    Race a benchmark of asv as it is.
fairlap bisect --releases onnxruntime --good 1.26.0 --bad 1.32.0 convnet --on onnxruntime
    Find the release that made a model slower, each in an environment of its own.
""",
)
@click.argument("named", nargs=-1, metavar="[MODEL]")
@click.option("--good", required=True, metavar="COMMIT", help="Ancestor of --bad, or version, that was fast enough.")
@click.option("--bad", required=True, metavar="COMMIT", help="Commit or version that is slower.")
@click.option(
    "--releases",
    metavar="PACKAGE",
    help="Search versions of a package, or wheels: ./nightlies.",
)
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
@click.option("--suite", type=SUITE, metavar="BENCHMARKS", help="Race one of asv, pytest-benchmark or another tool.")
@click.option("--only", default="", metavar="NAME|REGEX", help="Which one of BENCHMARKS.")
@click.option("--on", default="", metavar="FRAMEWORK", help="Race MODEL on this: torch, torch:compile.")
@click.option("--batch", type=click.IntRange(min=1), help="Items in one call of MODEL.  [default: the model's own]")
@click.option("--mode", default="infer", metavar="MODE", help="infer, grad or train.  [default: infer]")
@click.option("--precision", default="fp32", metavar="PRECISION", help="Of MODEL.  [default: fp32]")
@click.option("--shapes", multiple=True, metavar="INPUT:8x128,...", help="Shapes of the inputs of your own model.")
@click.option("--dims", metavar="NAME=N,...", help="Sizes of its named dimensions: batch=8,sequence=128.")
@click.option("--trust", is_flag=True, help="Allow its file to run code when it is loaded, as a pickle does.")
@click.option(
    "--quantity",
    type=Choice(["wall", "cpu_time", "memory_peak", "time_to_first", "compile_time"]),
    default="wall",
    metavar="QUANTITY",
    help="wall (default), cpu_time, memory_peak, time_to_first, compile_time.",
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
def command(
    named: tuple[str, ...],
    releases: str | None,
    output: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    wait: bool | None,
    **given: Any,
) -> None:
    """Find the commit or the release that made a model, a callable or a program slower.

    Each step races the commit that tells most against the good end, in turns in fresh processes, and updates the
    probability of every commit. The search stops when one commit reaches --sure, and races it against its parent.
    Commits that do not build, fail or answer otherwise are skipped. Merges count as one commit.

    With --releases, the versions of a package take the place of commits. Each that is raced is installed once, in an
    environment that `fairlap envs` lists.

    Your checkout is not touched. After Ctrl-C the same command goes on from what was raced.

    Exit status: 0 found, 1 the bad end is not shown to be slower, 3 undecided, or several commits are suspect because
    they cannot be raced, 2 an error, 130 after Ctrl-C.
    """
    from fairlap.bisection.bisect_request import BisectRequest
    from fairlap.bisection.bisection_text import text_of
    from fairlap.bisection.searching import searched
    from fairlap.cli.options.output_options import writable

    writable(output, only=(".json",))
    files = [] if releases is None else [each for each in named if each.endswith(_WHEEL)]  # as a shell lists them
    wheels = () if releases is None else (releases, *files)
    model = _model_of([each for each in named if each not in files], given)
    request = BisectRequest(
        benchmark=benchmark_of(given), model=model, releases=wheels, wait=wait is not False, **given
    )
    found = decided(
        partial(searched, request),
        quiet=quiet,
        interrupted="interrupted; what was raced is kept, and the same command goes on from it",
    )
    print_result(found, text_of(found), as_json=as_json, output=output)
    raise SystemExit(found.exit_status)


def _model_of(named: list[str], options: dict[str, Any]) -> RacedModel:
    """Take the options of a model out of those that were given."""
    import msgspec

    from fairlap.bisection.bisect_request import E_BISECT, RacedModel
    from fairlap.errors import InvalidRequest

    if len(named) > 1:
        raise InvalidRequest(f"name one MODEL (got {', '.join(named[:3])})", code=E_BISECT)
    fields = {name: options.pop(name) for name in RacedModel.__struct_fields__ if name != "model"}
    try:
        return msgspec.convert({**fields, "model": "".join(named)}, RacedModel)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error), code=E_BISECT) from None
