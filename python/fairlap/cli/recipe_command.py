"""``fairlap recipe FILE --out FOLDER``: a saved run as a recipe for doing it again."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("recipe")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new or empty folder."
)
def command(file: Path, folder: Path) -> None:
    """Write a container, the versions that ran, the plan, and the one command that repeats the race.

    FILE is what ``fairlap compare --json`` wrote.
    """
    from fairlap.ledger.recipe import write_recipe
    from fairlap.race.saving import load_run

    written = write_recipe(load_run(file), folder)
    click.echo("\n".join(str(path) for path in written))
    click.echo(f"{folder / 'README.md'} tells how to use them", err=True)
