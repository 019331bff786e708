"""``fairlap report RUN -o FILE.html``: a run as a page and as pictures."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import BASELINE, FOR, OUTPUT, PRICE_OPTION, REQUIRE, writable
from fairlap.cli.options.values import RUN_OR_FILE
from fairlap.cli.output import print_line


@click.command(
    "report",
    cls=Command,
    examples="""
fairlap report last -o page.html
    Write the newest run as a page.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@OUTPUT
@click.option(
    "--charts",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write every chart to a folder, as SVG and PNG.",
)
@BASELINE
@PRICE_OPTION
@REQUIRE
@FOR
def command(
    run: str,
    output: tuple[Path, ...],
    charts: Path | None,
    baseline: str | None,
    price: str | None,
    require: str | None,
    use: str | None,
) -> None:
    """Write a run as one HTML page that needs no network (-o page.html), its main chart (-o chart.svg), or all charts.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file. Stored runs have their samples, and
    charts of them.
    """
    from fairlap.errors import InvalidRequest
    from fairlap.render.outputs import write
    from fairlap.results.decision.question import question_of, with_decision
    from fairlap.results.prices import price_named
    from fairlap.results.results import results_of
    from fairlap.store.runs.run_sources import require_contestant, run_named, samples_of

    if not output and charts is None:
        raise InvalidRequest("give a file or folder to write: -o report.html, or --charts FOLDER")
    files = writable(output)
    question = question_of(require or "", use or "")
    saved, run_id = run_named(run)
    require_contestant(saved.plan, baseline or "")
    results = results_of(
        saved,
        run_id,
        samples=samples_of(run),
        baseline=baseline or "",
        price=price_named(price) if price else None,
    )
    results = with_decision(results, question)
    for path, chosen in files:
        write(path, results, chosen)
        print_line(f"{path}")
    if charts is not None:
        from fairlap.render.charts.parts.static import write_charts

        for path in write_charts(results, charts):
            print_line(f"{path}")
