"""``fairlap report RUN --html F``: a saved run as a page and as pictures."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("run", metavar="RUN|FILE")
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one page there that needs no network.",
)
@click.option(
    "--charts",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write SVG and PNG of each chart there.",
)
@click.option("--baseline", default="", help="Whom ratios are told against.  [default: the fastest]")
@click.option("--price", metavar="PRICE", help="Of the machine, as 1.212/h or 1.10EUR/h, or a name in your table.")
def command(run: str, html: Path | None, charts: Path | None, baseline: str, price: str | None) -> None:
    """A kept run, or a file that `fairlap compare --json` wrote, as one HTML page, its charts as pictures, or both.

    Kept runs have their raw samples, and charts of them.
    """
    from fairlap.errors import InvalidRequest
    from fairlap.results.prices import price_named
    from fairlap.results.results import results_of
    from fairlap.store.run_sources import require_contestant, run_named, samples_of

    if html is None and charts is None:
        raise InvalidRequest("say what to write: --html report.html, or --charts FOLDER")
    if html is not None and not html.parent.is_dir():
        raise InvalidRequest(f"{html} cannot be written: {html.parent} is not a folder")
    saved, run_id = run_named(run)
    require_contestant(saved.plan, baseline)
    shown = results_of(
        saved,
        run_id,
        samples=samples_of(run),
        baseline=baseline,
        price=price_named(price) if price else None,
    )
    if html is not None:
        from fairlap.machine.atomic_files import write_output
        from fairlap.render.report.page import page_of

        write_output(html, page_of(shown).encode())
        click.echo(f"{html}")
    if charts is not None:
        from fairlap.render.charts.static import write_charts

        for path in write_charts(shown, charts):
            click.echo(f"{path}")
