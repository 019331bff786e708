"""``fairlap verify BUNDLE``: check that the figures are those that the samples give."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.values import FILE, NAME, hand_over_bundle
from fairlap.cli.output import print_error, print_json, print_line
from fairlap.printable import joined_lines
from fairlap.printed_document import PrintedDocument

_MOST_SHOWN = 20
_NOT_MADE_AGAIN_STATUS = 3


class VerificationDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.verification/1"):
    whole: bool  # nothing was changed
    code: str  # of what is wrong; empty where all agrees
    run: str
    fairlap: str
    sha256: str  # of the manifest
    signer: str
    parts: int
    problems: list[str]  # each begins with the part that it is about
    unchecked: list[str]
    not_made_again: list[str]  # documents, whose hashes alone were checked
    computed_again: dict[str, int]
    broken_rules: list[str]  # of a submission; none where no rules were given


@click.command(
    "verify",
    cls=Command,
    examples="""
fairlap verify evidence.fairlap
    Check a bundle.
""",
)
@click.argument("bundle", type=FILE, metavar="FILE.fairlap")
@click.option("--hash", "expected", type=NAME, metavar="HEX", help="The hash that `fairlap bundle` printed.")
@click.option(
    "--signer",
    "signers",
    type=FILE,
    metavar="FILE",
    help="Require a signature by this SSH public key, or by allowed signers in it.",
)
@click.option("--rules", type=FILE, metavar="FILE", help="Require the rules of a submission in this TOML file.")
@JSON
def command(bundle: Path, expected: str | None, signers: Path | None, rules: Path | None, as_json: bool) -> None:
    """Check the hashes of a bundle, and compute every row and verdict again from its raw samples.

    The method, the table and the report are made again too, and compared.

    Exit status: 0 when everything agrees, 1 when a sample, figure, page or hash was changed or a rule is broken, 2 when
    FILE is not a bundle, or not signed by --signer, 3 when nothing contradicts but a document could not be made again
    here.
    """
    from fairlap.board.submission_rules import CODE
    from fairlap.errors import InvalidRequest
    from fairlap.machine.files.regular_file import content_of
    from fairlap.render.bundle.verify import CHANGED, NOT_MADE_AGAIN, verify

    try:
        content = content_of(bundle)
    except OSError as error:
        raise InvalidRequest(f"cannot read the bundle {bundle}: {error.strerror}", code="E_BUNDLE") from None
    found = verify(content, str(bundle), expected or "", signers)
    broken = _broken(bundle, rules) if found.is_whole else []
    if as_json:
        print_json(
            VerificationDocument(
                whole=found.is_whole,
                code=found.code,
                run=found.run,
                fairlap=found.fairlap,
                sha256=found.hash,
                signer=found.signer,
                parts=found.parts,
                problems=found.problems,
                unchecked=found.unchecked,
                not_made_again=found.not_made_again,
                computed_again=found.counts,
                broken_rules=broken,
            )
        )
    elif found.is_whole:
        again = ", ".join(f"{what} {count:,}" for what, count in found.counts.items())
        print_line(f"{bundle}: run {found.run}, {found.parts} parts with the hashes of the manifest")
        print_line(f"computed again, and the same: {again}")
        click.echo(joined_lines(f"not computed again: {text}" for text in found.unchecked))
        if found.not_made_again:
            click.echo(joined_lines(f"not made again: {text}" for text in found.not_made_again))
        print_line(f"sha256 of its manifest: {found.hash}")
        if found.signer:
            print_line(f"signed by {found.signer}")
    else:
        click.echo(joined_lines(found.problems[:_MOST_SHOWN]))
        if len(found.problems) > _MOST_SHOWN:
            print_line(f"and {len(found.problems) - _MOST_SHOWN:,} more; --json lists them all")
    if not found.is_whole:
        count = "1 thing is" if len(found.problems) == 1 else f"{len(found.problems):,} things are"
        print_error(f"{bundle} was changed or damaged: {count} not as recorded", CHANGED)
        raise SystemExit(1)
    if broken:
        click.echo(joined_lines(broken[:_MOST_SHOWN]))
        print_error(f"{bundle} breaks {len(broken):,} of the rules in {rules}", CODE)
        raise SystemExit(1)
    if found.not_made_again:
        names = ", ".join(text.partition(":")[0] for text in found.not_made_again)
        print_error(
            f"{bundle}: {names} could not be made again, so only their hashes agree; do not rely on them or open them",
            NOT_MADE_AGAIN,
        )
        raise SystemExit(_NOT_MADE_AGAIN_STATUS)


def _broken(bundle: Path, rules: Path | None) -> list[str]:
    """Name the rules of a submission that a bundle breaks, which is whole."""
    from fairlap.board.submission_rules import broken_rules, rules_in
    from fairlap.store.stored_rows import rows_named

    if rules is None:
        return []
    required = rules_in(rules)
    hand_over_bundle(bundle)
    return broken_rules(required, rows_named(str(bundle)))
