"""``fairlap board STORE -o FOLDER``: a static site of models, frameworks and machines."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.values import FILE
from fairlap.cli.output import print_json, print_line

_FOLDER = click.Path(path_type=Path)


@click.command(
    "board",
    cls=Command,
    examples="""
fairlap board -o site
    Publish the runs of your store.
fairlap board lab.sqlite --rules submission.toml -o site
    Publish those of a file that keep the rules.
""",
)
@click.argument("store", type=FILE, required=False, metavar="[STORE]")
@click.option("-o", "--output", type=_FOLDER, required=True, metavar="FOLDER", help="Write the site into FOLDER.")
@click.option("--rules", type=FILE, metavar="FILE", help="Leave out runs that break a rule of this TOML file.")
@JSON
def command(store: Path | None, output: Path, rules: Path | None, as_json: bool) -> None:
    """Write a static site: models by frameworks by machines, with histories and evidence bundles.

    STORE is a file of runs; FAIRLAP_STORE is read by default, a shared one too. Of each work, machine and contestant
    the newest finished run is shown, and linked to its bundle, which describes the machine and may hold paths. Pages
    have no scripts. FOLDER is new, empty or a board; a board is written again.
    """
    from fairlap.board.board import board_of
    from fairlap.board.site import require_folder, write_site
    from fairlap.board.submission_rules import rules_in
    from fairlap.quantity_text import count
    from fairlap.store.store import open_store

    required = None if rules is None else rules_in(rules)
    require_folder(output)
    with open_store(store, reading=True) as opened:
        board = board_of(opened, required)
    write_site(board, output)
    if as_json:
        print_json(board.document)
        return
    found = board.document
    left_out = f"; left out {len(found.omitted):,}, which the page lists" if found.omitted else ""
    print_line(f"wrote {output}: {count(len(found.cells), 'cell')} of {count(len(board.bundles), 'run')}{left_out}")
