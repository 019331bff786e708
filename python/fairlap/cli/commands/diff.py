"""``fairlap diff BEFORE AFTER``: what two saved runs show about each other."""

from __future__ import annotations

import click

from fairlap.cli.output import print_json
from fairlap.cli.values import a_share


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--margin",
    callback=a_share,
    default="2%",
    metavar="SHARE",
    help="A difference smaller than this share is none.  [default: 2%]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(before: str, after: str, margin: float, as_json: bool) -> None:
    """Compare two runs: ids of `fairlap runs`, or files that `fairlap compare --json` wrote.

    Runs that did not take turns cannot tell a change of the code from one of the machine, so the answer is widened
    by what may have changed, and refused where the work or the processor differs.
    """
    from fairlap.history.between_runs import compare_saved_runs
    from fairlap.history.text import runs_text
    from fairlap.machine.differences import differences, differences_text
    from fairlap.store.run_sources import run_named
    from fairlap.verdict import Change

    (old, _), (new, _) = run_named(before), run_named(after)
    compared = compare_saved_runs(old, new, margin=margin)
    if as_json:
        told = {
            "differences": compared.differences,
            "not_compared": compared.unmatched,
            "machine": [str(each) for each in differences(old.machine, new.machine)],
        }
        print_json(told)
    else:
        click.echo(runs_text(compared))
        click.echo(differences_text(old.machine, new.machine))
    if all(each.regression.change is Change.NOT_COMPARABLE for each in compared.differences):
        raise SystemExit(1)  # nothing could be told
