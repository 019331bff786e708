"""``fairlap diff BEFORE AFTER``: what two saved runs show about each other."""

from __future__ import annotations

import click


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--margin", default=0.02, show_default=True, help="A difference smaller than this share is none.")
def command(before: str, after: str, margin: float) -> None:
    """Compare two runs: ids of `fairlap runs`, or files that `fairlap compare --json` wrote.

    Runs that did not take turns cannot tell a change of the code from one of the machine, so the answer is widened
    by what may have changed, and refused where the work or the processor differs.
    """
    from fairlap.ledger.sources import run_named
    from fairlap.machine.differences import differences_text
    from fairlap.regressions.between_runs import compare_saved_runs
    from fairlap.regressions.telling import runs_text

    (old, _), (new, _) = run_named(before), run_named(after)
    click.echo(runs_text(compare_saved_runs(old, new, margin=margin)))
    click.echo(differences_text(old.machine, new.machine))
