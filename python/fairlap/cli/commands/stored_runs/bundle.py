"""``fairlap bundle RUN -o FILE``: a run with all its evidence in one file."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.output import print_json
from fairlap.cli.output_options import BASELINE, JSON, PRICE_OPTION
from fairlap.cli.values import FILE


@click.command("bundle")
@click.argument("run", metavar="RUN|FILE")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE.fairlap", help="Write the bundle to FILE.")
@click.option("--no-page", is_flag=True, help="Leave the HTML report out, which needs Altair.")
@BASELINE
@PRICE_OPTION
@JSON
def command(run: str, output: Path, no_page: bool, baseline: str | None, price: str | None, as_json: bool) -> None:
    """Write plan, samples, environment, hashes, licences, figures and report of a run to one file.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file with samples, of `fairlap runs export`.
    The hash that is printed stands for the whole file; `fairlap verify` checks it and computes every figure again.
    The file describes your machine and may hold paths: see docs/how-to/audit-a-run.md before publishing it.
    """
    from fairlap.cli.output_options import require_writable
    from fairlap.machine.atomic_files import write_output
    from fairlap.render.bundle.contents import bundle_of
    from fairlap.render.bundle.samples import run_with_samples
    from fairlap.results.prices import price_named
    from fairlap.store.run_sources import require_contestant

    require_writable(output)
    priced = price_named(price) if price else None
    saved, run_id, samples = run_with_samples(run)
    require_contestant(saved.plan, baseline or "")
    found = bundle_of(saved, run_id, samples, baseline=baseline or "", price=priced, with_page=not no_page)
    write_output(output, found.content)
    if as_json:
        print_json({"file": str(output), "run": run_id, "parts": found.parts, "sha256": found.hash})
        return
    click.echo(f"wrote {output}: {found.parts} parts, {len(found.content):,} bytes")
    click.echo(f"sha256 of its manifest: {found.hash}")
