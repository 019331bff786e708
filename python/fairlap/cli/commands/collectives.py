"""``fairlap collectives``: all-reduce, all-gather and broadcast of each framework beside MPI's."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT, writable
from fairlap.cli.options.values import CONTESTANTS, DURATION, Parsed, one_or_more
from fairlap.cli.output import print_document, print_note
from fairlap.errors import InvalidRequest
from fairlap.request.fields.scale import COLLECTIVES, E_SCALE, Collective, Scale
from fairlap.request.names import Contestants
from fairlap.request.units import array_sizes_in

if TYPE_CHECKING:
    from fairlap.scenarios.collectives.results.collectives_result import CollectivesResult

_FEWEST_RANKS = 2  # one rank exchanges nothing
_LARGEST_RANKS, _LARGEST_BLOCKS = 1024, 1000


@click.command(
    "collectives",
    cls=Command,
    examples="""
fairlap collectives --on torch,jax --sizes 4KB,1MB
    Time exchanging arrays of two sizes.
""",
)
@click.option("--on", "on", type=CONTESTANTS, default="torch,jax,tensorflow,mpi", show_default=True, help="Frameworks.")
@click.option("--processes", default=2, show_default=True, help="Processes that exchange: the ranks, at least 2.")
@click.option("--threads", default=1, show_default=True, help="Threads of each rank.")
@click.option(
    "--sizes",
    type=Parsed(array_sizes_in, "size,..."),
    default="4KB,1MB,16MB",
    show_default=True,
    help="Sizes of each rank's float32 array; or deepbench.",
)
@click.option(
    "--operations",
    type=one_or_more(*COLLECTIVES),
    metavar="NAME,...",
    default=",".join(COLLECTIVES),
    show_default=True,
    help="What to time.",
)
@click.option("--blocks", default=7, show_default=True, help="Fresh ranks of each framework; intervals take six.")
@click.option("--seconds", type=DURATION, default="0.2", show_default=True, help="Time for each operation and size.")
@click.option("--seed", type=int, help="Draw the order from this seed.  [default: a new one]")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@OUTPUT
@JSON
def command(
    on: Contestants,
    processes: int,
    threads: int,
    sizes: tuple[int, ...],
    operations: tuple[Collective, ...],
    blocks: int,
    seconds: float,
    seed: int | None,
    quiet: bool,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Measure collective operations: all-reduce, all-gather and broadcast of each framework beside MPI's.

    All ranks make the same calls at the same time, natively timed; a sample is that of the slowest rank, and results
    are checked. Frameworks take turns in fresh processes. Exit status 1 when a framework failed or a result was wrong.
    """
    from fairlap.race.planning.scales import without_ranks
    from fairlap.render.encoders import SUFFIXES
    from fairlap.scenarios.collectives.race.collectives_run import CollectivesPlan, run_collectives
    from fairlap.scenarios.collectives.render.document import document_of
    from fairlap.scenarios.collectives.results.collectives_result import result_of
    from fairlap.scenarios.ranks.ranks_messages import RankLimits

    for name, value, least, most in (
        ("--processes", processes, _FEWEST_RANKS, _LARGEST_RANKS),
        ("--blocks", blocks, 1, _LARGEST_BLOCKS),
    ):
        if not least <= value <= most:
            raise InvalidRequest(f"{name} must be between {least} and {most} (got {value})")
    if threads < 1:
        raise InvalidRequest(f"--threads must be 1 or more (got {threads})")
    if why := Scale(threads, processes).why_not_on(len(os.sched_getaffinity(0))):
        raise InvalidRequest(f"{why}; give fewer --processes or --threads", code=E_SCALE)
    _require_no_variants(on)
    if without := without_ranks(on):
        raise InvalidRequest(f"{', '.join(without)}: has no collective operations; leave it out of --on", code=E_SCALE)
    files = writable(output, only=SUFFIXES)
    seed = secrets.randbelow(2**32) if seed is None else seed
    limits = RankLimits(prepare_s=180.0, measure_s=180.0)
    plan = CollectivesPlan(processes, threads, operations, sizes, blocks, float(seconds), seed, limits)
    result = result_of(run_collectives(on, plan, (lambda _: None) if quiet or as_json else print_note))
    status = print_document(document_of(result), as_json=as_json, files=files)
    _require_times(result)
    raise SystemExit(status)


def _require_no_variants(on: Contestants) -> None:
    """Variants and options are about a model, and there is none."""
    for name in on:
        if name.variant or name.options or name.best:
            raise InvalidRequest(
                f"{name.text}: no model runs here, and variants and options are those of models; name the framework "
                "alone, such as torch or torch==2.13.0",
                code="E_CONTESTANT",
            )


def _require_times(result: CollectivesResult) -> None:
    if result.failures or any("gave rank" in row.absent for row in result.rows):
        raise click.exceptions.Exit(1)
