"""``fairlap serve``: stored runs in a web browser."""

from __future__ import annotations

import click

from fairlap.cli.help import Command
from fairlap.cli.options.values import NAME
from fairlap.cli.output import print_note


@click.command(
    "serve",
    cls=Command,
    examples="""
fairlap serve
    Browse the store at http://127.0.0.1:8321.
""",
)
@click.option("--host", type=NAME, default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Listen on this port; 0 is any."
)
def command(host: str, port: int) -> None:
    """Browse stored runs in a web browser: the list, reports, histories, runs side by side, downloads and JSON.

    The store is only read. Other machines are served only with --host, and then only with a token, which is printed
    once or taken from FAIRLAP_SERVE_TOKEN. The connection is not encrypted.

    Exit status: 130 after Ctrl-C, 143 after SIGTERM, 129 after a closed terminal, 2 when the port or store cannot be
    used.
    """
    from fairlap.errors import NotAvailable
    from fairlap.store.errors import NoSuchRun
    from fairlap.store.store import open_store

    try:
        from fairlap.browse.server import BrowsingServer, end
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        raise NotAvailable(f"fairlap serve needs {error.name}; install it with: pip install 'fairlap[serve]'") from None
    try:
        with open_store(reading=True):
            pass
    except NoSuchRun as error:
        print_note(str(error))
    server = BrowsingServer(host, port)
    for note in server.notes:
        click.echo(f"fairlap: {note}", err=True)  # with the token of its address, which print_note would hide
    end(server.run())
