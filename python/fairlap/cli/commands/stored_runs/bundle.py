"""``fairlap bundle RUN -o FILE``: a run with all its evidence in one file."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import BASELINE, JSON, PRICE_OPTION
from fairlap.cli.options.values import FILE, RUN_OR_FILE
from fairlap.cli.output import print_json, print_line
from fairlap.printed_document import PrintedDocument


class WrittenBundle(PrintedDocument, frozen=True, tag="fairlap.bundle/1"):
    file: str
    run: str
    parts: int
    sha256: str  # of the manifest


@click.command(
    "bundle",
    cls=Command,
    examples="""
fairlap bundle last -o evidence.fairlap
    Write the newest run with all its evidence.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE.fairlap", help="Write the bundle to FILE.")
@click.option("--no-page", is_flag=True, help="Leave the HTML report out, which needs Altair.")
@click.option(
    "--sign",
    "key",
    type=FILE,
    metavar="KEY",
    help="Sign with this SSH key; the agent has the private one of a public key.",
)
@BASELINE
@PRICE_OPTION
@JSON
def command(
    run: str,
    output: Path,
    no_page: bool,
    key: Path | None,
    baseline: str | None,
    price: str | None,
    as_json: bool,
) -> None:
    """Write plan, samples, environment, hashes, licences, figures and report of a run to one file.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file with samples, of `fairlap runs export`.
    The hash that is printed stands for the whole file; `fairlap verify` checks it and computes every figure again.
    The file describes your machine and may hold paths: see docs/how-to/audit-a-run.md before publishing it.
    """
    from functools import partial

    from fairlap.cli.options.output_options import require_writable
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.render.bundle.contents import bundle_of
    from fairlap.render.bundle.samples import run_with_samples
    from fairlap.render.bundle.signature import sign
    from fairlap.results.prices import price_named
    from fairlap.store.runs.run_sources import require_contestant

    require_writable(output)
    priced = price_named(price) if price else None
    saved, run_id, samples = run_with_samples(run)
    require_contestant(saved.plan, baseline or "")
    signed = None if key is None else partial(sign, key=key)
    found = bundle_of(saved, run_id, samples, baseline=baseline or "", price=priced, with_page=not no_page, sign=signed)
    write_output(output, found.content)
    if as_json:
        print_json(WrittenBundle(str(output), run_id, found.parts, found.hash))
        return
    print_line(f"wrote {output}: {found.parts} parts, {len(found.content):,} bytes")
    print_line(f"sha256 of its manifest: {found.hash}")
