"""``fairlap export RUN``: the rows of a run in the format of your choice."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import BASELINE, JSON, OUTPUT, PRICE_OPTION, writable
from fairlap.cli.options.values import RUN_OR_FILE, Choice
from fairlap.cli.output import print_json

_FORMATS = ["csv", "json", "jsonl", "md"]


@click.command(
    "export",
    cls=Command,
    examples="""
fairlap export last -o rows.csv
    Write the rows of the newest run.
""",
)
@click.argument("run_name", type=RUN_OR_FILE, metavar="RUN|FILE")
@click.option("--format", "format_name", type=Choice(_FORMATS), default="csv", help="Print this.  [default: csv]")
@click.option("--all-columns", is_flag=True, help="Write also columns of CSV that are absent in every row.")
@OUTPUT
@JSON
@BASELINE
@PRICE_OPTION
def command(
    run_name: str,
    format_name: str,
    all_columns: bool,
    output: tuple[Path, ...],
    as_json: bool,
    baseline: str | None,
    price: str | None,
) -> None:
    """Write the rows of a run: one for every contestant, work and kind of conditions.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file, written by `-o FILE.json`.
    """
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.render.files import csv_file
    from fairlap.render.outputs import ROW_FORMATS, Format, encoded, format_of
    from fairlap.results.prices import price_named
    from fairlap.results.results import results_of
    from fairlap.results.row import RowsDocument
    from fairlap.store.runs.run_sources import require_contestant, run_named

    for path in output:
        format_of(path, ROW_FORMATS)
    files = writable(output)
    run, run_id = run_named(run_name)
    require_contestant(run.plan, baseline or "")
    priced = price_named(price) if price else None
    rows = list(results_of(run, run_id, baseline=baseline or "", price=priced).rows)

    def content(chosen: Format) -> bytes:
        return (
            csv_file.encode(rows, all_columns=True) if all_columns and chosen.name == "csv" else encoded(rows, chosen)
        )

    for path, chosen in files:
        write_output(path, content(chosen))
    if as_json:
        print_json(RowsDocument(rows))
    elif not files:
        click.echo(content(ROW_FORMATS[f".{format_name}"]), nl=False)
