"""``fairlap across RUN...``: runs of different machines, prices and environments side by side."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import FOR, JSON, OUTPUT, REQUIRE, writable
from fairlap.cli.options.values import RUN_OR_FILE
from fairlap.cli.output import print_document


@click.command(
    "across",
    cls=Command,
    examples="""
fairlap across here.json there.json --price there.json=1.2/h
    Put two machines side by side.
""",
)
@click.argument("runs", nargs=-1, required=True, type=RUN_OR_FILE, metavar="RUN|FILE...")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="[RUN=]PRICE",
    help="Price of an hour. Repeatable.  [default: that of the race]",
)
@click.option(
    "--carbon",
    "carbons",
    multiple=True,
    metavar="[RUN=]400g/kWh",
    help="Carbon of the electricity. Repeatable.  [default: none]",
)
@REQUIRE
@FOR
@OUTPUT
@JSON
def command(
    runs: tuple[str, ...],
    prices: tuple[str, ...],
    carbons: tuple[str, ...],
    require: str | None,
    use: str | None,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Put runs of different machines side by side: time, throughput, cost, energy, and what follows from them.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file. The runs did not alternate, so what
    differs between them is listed and no verdict is given. A chart of latency against cost is written with -o FILE.svg.
    """
    from fairlap.history.across.conditions_given import by_run, grams_per_joule
    from fairlap.render.across.document import document_of
    from fairlap.render.encoders import SUFFIXES
    from fairlap.results.decision.question import question_of
    from fairlap.results.prices import price_named
    from fairlap.store.stored_rows import rows_named

    files = writable(output, only=SUFFIXES)
    question = question_of(require or "", use or "")
    given_prices = by_run("--price", prices, runs, price_named)
    given_carbon = by_run("--carbon", carbons, runs, grams_per_joule)
    shown = document_of([rows_named(run) for run in runs], given_prices, given_carbon, question)
    raise SystemExit(print_document(shown, as_json=as_json, files=files))
