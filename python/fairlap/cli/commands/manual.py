"""``fairlap manual``: manual pages for ``man``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.errors import NotWritten


@click.command(
    "manual",
    cls=Command,
    examples="""
fairlap manual ~/.local/share/man/man1
    Write the pages to where `man fairlap-compare` finds them.
""",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a manual page for every command into FOLDER.

    The pages say what --help says. Settings of scenarios that installed packages add are among the options.
    """
    from fairlap.cli import cli
    from fairlap.cli.manual import manual_pages
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.version import __version__

    try:
        folder.mkdir(parents=True, exist_ok=True)
        pages = dict(manual_pages(cli, __version__))
        for name, text in pages.items():
            write_output(folder / name, text.encode())
    except OSError as error:
        raise NotWritten(f"cannot write manual pages to {folder}: {error.strerror}") from None
    click.echo(f"{len(pages)} pages in {folder}")
