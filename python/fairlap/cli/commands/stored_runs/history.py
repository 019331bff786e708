"""``fairlap history MODEL``: a model's times over all stored runs, and where they changed."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT, writable
from fairlap.cli.options.values import DATE, MODEL, NAME, SHARE
from fairlap.cli.output import print_document


@click.command(
    "history",
    cls=Command,
    examples="""
fairlap history convnet --since 2026-01-01
    Show when each contestant became slower, and whether it was the machine.
fairlap history mlp --on torch --quantity memory_peak
    Show when its peak memory grew.
fairlap history callables --branch main
    Show the runs of one branch, and between which commits a change lies.
""",
)
@click.argument("model", type=MODEL, metavar="MODEL")
@click.option("--on", "on", type=NAME, metavar="NAMES", help="Only these contestants or frameworks.")
@click.option("--since", type=DATE, help="Only runs that began at DATE (UTC) or later.")
@click.option("--branch", type=NAME, metavar="NAME", help="Only runs from a working folder on this git branch.")
@click.option(
    "--quantity",
    type=NAME,
    metavar="QUANTITY",
    help="memory_peak, cpu_time, energy_per_item, ...  [default: what ranks them]",
)
@click.option("--margin", type=SHARE, default="1%", help="Ignore changes smaller than SHARE.  [default: 1%]")
@OUTPUT
@JSON
def command(
    model: str,
    on: str | None,
    since: str | None,
    branch: str | None,
    quantity: str | None,
    margin: float,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Show a quantity of each contestant in all stored runs of a model, and every change with date, versions and size.

    MODEL is a model, `commands` or `callables`; or `asv`, `github-action-benchmark` or `pytest-benchmark`, of which
    `fairlap runs import` reads results. QUANTITY is a column of the row without its unit, or a metric of the
    answers.

    Contestants of one run took turns, so when all of them move together it is the machine, and when one moves against
    the others it is this contestant.

    Exit status: 0 with or without changes, 2 when the store has no such run.
    """
    from fairlap.history.foreign.foreign_history import any_history_of
    from fairlap.render.encoders import SUFFIXES
    from fairlap.render.trends.document import document_of
    from fairlap.store.store import open_store

    files = writable(output, only=SUFFIXES)
    with open_store(reading=True) as store:
        asked = {"on": on or "", "since": since or "", "branch": branch or "", "quantity": quantity or ""}
        found = any_history_of(store, model, **asked, margin=margin)
    raise SystemExit(print_document(document_of(found), as_json=as_json, files=files))
