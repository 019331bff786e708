"""``fairlap aa``: the referee on trial, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairlap.cli.wishes import a_device


@click.command("aa")
@click.argument("model")
@click.option("--on", "contestant", required=True, metavar="A", help="Who races against itself: torch, jax, ...")
@click.option("--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Verdicts to ask for.")
@click.option("--blocks", type=click.IntRange(6, 1_000), default=12, show_default=True, help="Blocks in each run.")
@click.option("--slowdown", default="", metavar="S", help="Make the second slower, 2% say: how often is it found?")
@click.option("--batch", type=int, help="Items in one call.  [default: the model's]")
@click.option("--device", callback=a_device, help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--threads", type=int, help="Threads of the contestant.  [default: all cores]")
@click.option("--conditions", type=click.Choice(["controlled", "as-found"]), default="controlled", show_default=True)
@click.option("--seconds", type=float, default=0.5, show_default=True, help="Measured in each process.")
@click.option("--seed", type=int, help="Draws orders and processes.  [default: drawn, and printed]")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every verdict there.")
def command(model: str, contestant: str, json_file: Path | None, **wishes: Any) -> None:
    """Race a contestant against itself under two names, and count the differences claimed.

    Every one is false, and at most 5 % are promised. Exit status 1 when more were claimed than the promise allows.
    """
    from fairlap.cli.aa_running import run_self_test

    raise SystemExit(run_self_test(model, contestant, json_file, **wishes))
