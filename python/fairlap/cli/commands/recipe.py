"""``fairlap recipe RUN --out FOLDER``: a saved run as a recipe for doing it again."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("recipe")
@click.argument("run", metavar="RUN|FILE")
@click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new or empty folder."
)
def command(run: str, folder: Path) -> None:
    """Write a container, the versions that ran, the plan, and the one command that repeats the race.

    Of a kept run, by its id or `last`, or of a file that ``fairlap compare --json`` wrote.
    """
    from fairlap.render.recipe import write_recipe
    from fairlap.store.run_sources import run_named

    written = write_recipe(run_named(run)[0], folder)
    click.echo("\n".join(str(path) for path in written))
    click.echo(f"{folder / 'README.md'} tells how to use them", err=True)
