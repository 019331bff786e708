"""``fairlap export FILE|RUN``: a saved run as rows in the format of your choice."""

from __future__ import annotations

from pathlib import Path

import click

_FORMATS = ["csv", "json", "jsonl", "parquet", "md"]


@click.command("export")
@click.argument("run_name", metavar="FILE|RUN")
@click.option("--format", "format_name", type=click.Choice(_FORMATS), help="[default: as --out ends, else csv]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write there.  [default: stdout]")
@click.option("--baseline", default="", metavar="NAME", help="Whom all are held against.  [default: the fastest]")
@click.option("--price", "price_text", metavar="1.212/h|NAME", help="What an hour costs, or a name in `list prices`.")
def command(run_name: str, format_name: str | None, out: Path | None, baseline: str, price_text: str | None) -> None:
    """Write the rows of a saved run: one for every contestant on every work under each kind of conditions."""
    from fairlap.errors import InvalidRequest
    from fairlap.machine.atomic_files import write_output
    from fairlap.render.outputs import ROW_FORMATS, encoded, format_of
    from fairlap.results.prices import price_named
    from fairlap.results.results import results_of
    from fairlap.store.run_sources import require_contestant, run_named

    name = f".{format_name or 'csv'}"
    chosen = format_of(out, ROW_FORMATS) if out is not None and not format_name else ROW_FORMATS[name]
    if out is None and chosen.binary:
        raise InvalidRequest(f"{chosen.name} is not for a terminal; give --out FILE")
    price = price_named(price_text) if price_text is not None else None
    run, run_id = run_named(run_name)
    require_contestant(run.plan, baseline)
    content = encoded(results_of(run, run_id, baseline=baseline, price=price).rows, chosen)
    if out is not None:
        write_output(out, content)
    else:
        click.echo(content, nl=False)
