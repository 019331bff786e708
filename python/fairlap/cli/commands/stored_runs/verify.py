"""``fairlap verify BUNDLE``: are the figures those that the samples give?"""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.output import print_error, print_json
from fairlap.cli.output_options import JSON
from fairlap.cli.values import FILE, NAME

_MOST_SHOWN = 20


@click.command("verify")
@click.argument("bundle", type=FILE, metavar="FILE.fairlap")
@click.option("--hash", "expected", type=NAME, metavar="HEX", help="The hash that `fairlap bundle` printed.")
@JSON
def command(bundle: Path, expected: str | None, as_json: bool) -> None:
    """Check the hashes of a bundle, and compute every row and verdict again from its raw samples.

    Exit status: 0 when everything agrees, 1 when a sample, figure or hash was changed, 2 when FILE is not a bundle.
    """
    from fairlap.errors import InvalidRequest
    from fairlap.render.bundle.verify import CHANGED, verify
    from fairlap.store.regular_file import content_of

    try:
        content = content_of(bundle)
    except OSError as error:
        raise InvalidRequest(f"cannot read the bundle {bundle}: {error.strerror}", code="E_BUNDLE") from None
    found = verify(content, str(bundle), expected or "")
    if as_json:
        print_json(
            {
                "whole": found.is_whole,
                "code": "" if found.is_whole else CHANGED,
                "run": found.run,
                "fairlap": found.fairlap,
                "sha256": found.hash,
                "parts": found.parts,
                "problems": found.problems,
                "unchecked": found.unchecked,
                "computed_again": found.counts,
            }
        )
    elif found.is_whole:
        again = ", ".join(f"{what} {count:,}" for what, count in found.counts.items())
        click.echo(f"{bundle}: run {found.run}, {found.parts} parts with the hashes of the manifest")
        click.echo(f"computed again, and the same: {again}")
        click.echo("\n".join(f"not computed again: {text}" for text in found.unchecked))
        click.echo(f"sha256 of its manifest: {found.hash}")
    else:
        click.echo("\n".join(found.problems[:_MOST_SHOWN]))
        if len(found.problems) > _MOST_SHOWN:
            click.echo(f"and {len(found.problems) - _MOST_SHOWN:,} more; --json lists them all")
    if not found.is_whole:
        count = "1 thing is" if len(found.problems) == 1 else f"{len(found.problems):,} things are"
        print_error(f"{bundle} was changed or damaged: {count} not as recorded", CHANGED)
        raise SystemExit(1)
