"""``fairlap mistakes``: how frameworks report the mistakes of their users."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT, writable
from fairlap.cli.options.values import CONTESTANTS, DURATION
from fairlap.cli.output import print_document, print_note
from fairlap.errors import InvalidRequest
from fairlap.request.names import Contestants

_LARGEST_BLOCKS = 1000


@click.command(
    "mistakes",
    cls=Command,
    examples="""
fairlap mistakes --on torch,torch:compile,jax
    Plant all thirty mistakes in three contestants.
fairlap mistakes shapes float_indices --on keras,keras:backend=jax -o found.csv
    Plant those of one kind, and one more.
""",
)
@click.argument("patterns", nargs=-1, metavar="[MISTAKE|KIND]...")
@click.option("--on", "on", type=CONTESTANTS, required=True, help="Frameworks.")
@click.option("--blocks", default=1, show_default=True, help="Fresh processes of each; intervals take six.")
@click.option("--limit", type=DURATION, default="60s", show_default=True, help="End a mistake that takes longer.")
@click.option("--seed", type=int, help="Draw the order from this seed.  [default: a new one]")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@OUTPUT
@JSON
def command(
    patterns: tuple[str, ...],
    on: Contestants,
    blocks: int,
    limit: float,
    seed: int | None,
    quiet: bool,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Plant users' mistakes in frameworks, and show what their errors name, or that nothing is reported.

    Kinds are shapes, values, setup, gradients and tracing. Rules decide whether a report names the user's line, both
    sides that contradict each other, the operator and the part. Exit status 1 when a framework could not run.
    """
    from fairlap.render.encoders import SUFFIXES
    from fairlap.scenarios.mistakes.catalogue import chosen
    from fairlap.scenarios.mistakes.race.mistakes_run import MistakesPlan, run_mistakes
    from fairlap.scenarios.mistakes.render.mistakes_document import document_of
    from fairlap.scenarios.mistakes.results.mistakes_result import result_of
    from fairlap.scenarios.mistakes.ways import way_name

    if not 1 <= blocks <= _LARGEST_BLOCKS:
        raise InvalidRequest(f"--blocks must be between 1 and {_LARGEST_BLOCKS} (got {blocks})")
    for name in on:
        way_name(name)
    files = writable(output, only=SUFFIXES)
    seed = secrets.randbelow(2**32) if seed is None else seed
    plan = MistakesPlan(chosen(patterns), blocks, float(limit), seed)
    run = run_mistakes(on, plan, (lambda _: None) if quiet or as_json else print_note)
    status = print_document(document_of(result_of(run)), as_json=as_json, files=files)
    raise SystemExit(1 if run.failures else status)
