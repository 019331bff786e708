"""``fairlap recipe RUN -o FOLDER``: how to repeat a run elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.values import RUN_OR_FILE
from fairlap.cli.output import print_note
from fairlap.printable import joined_lines


@click.command(
    "recipe",
    cls=Command,
    examples="""
fairlap recipe last -o repeat
    Write what repeats the newest run to a folder.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Write to a new or empty folder.",
)
def command(run: str, folder: Path) -> None:
    """Write a container, the versions that ran, the plan and the command that repeats a run.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file.
    """
    from fairlap.render.recipe import write_recipe
    from fairlap.store.runs.run_sources import run_named

    written = write_recipe(run_named(run)[0], folder)
    click.echo(joined_lines(written))
    print_note(f"see {folder / 'README.md'} for how to use them")
