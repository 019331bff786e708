"""``fairlap diff BEFORE AFTER``: what two saved runs show about each other."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("diff")
@click.argument("before", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("after", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--margin", default=0.02, show_default=True, help="A difference smaller than this share is none.")
def command(before: Path, after: Path, margin: float) -> None:
    """Compare two files that ``fairlap compare --json`` wrote.

    Runs that did not take turns cannot tell a change of the code from one of the machine, so the answer is widened
    by what may have changed, and refused where the work or the processor differs.
    """
    from fairlap.machine.differences import differences_text
    from fairlap.race.saving import load_run
    from fairlap.regressions.between_runs import compare_saved_runs
    from fairlap.regressions.telling import runs_text

    old, new = load_run(before), load_run(after)
    click.echo(runs_text(compare_saved_runs(old, new, margin=margin)))
    click.echo(differences_text(old.machine, new.machine))
