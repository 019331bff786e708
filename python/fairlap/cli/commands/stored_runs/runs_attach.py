"""``fairlap runs attach``: files that belong to a stored run, such as a trace or a log."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.values import RUN
from fairlap.cli.output import print_note, print_result
from fairlap.printed_document import PrintedDocument
from fairlap.store.runs.attached import AttachedFile


class AttachedFiles(PrintedDocument, frozen=True, tag="fairlap.attached/1"):
    run: str
    files: list[AttachedFile]


@click.command("attach")
@click.argument("run", type=RUN, metavar="RUN")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Remove this file again. Repeatable.")
@click.option(
    "--save", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="Copy all into FOLDER."
)
@JSON
def attach_command(
    run: str, files: tuple[Path, ...], removed: tuple[str, ...], save: Path | None, as_json: bool
) -> None:
    """Attach copies of files to a run of this machine, such as a trace or a log; then list what is attached.

    They are kept beside the store until the run is removed. Files of a run, bundles and shared stores lack them.
    """
    from fairlap.quantity_text import size
    from fairlap.store.opening import store_path
    from fairlap.store.runs.attached import attach, attached_files, attached_folder, detach, save_attached
    from fairlap.store.store import open_store

    path = store_path()
    with open_store(path, reading=True) as store:
        run = store.id_of(run)
    folder = attached_folder(path, run)
    if files:
        attach(folder, files)
    if removed:
        detach(folder, removed)
    if save is not None:
        for saved in save_attached(folder, save):
            print_note(f"wrote {saved}")
    found = attached_files(folder)
    lines = [f"{each.name}  {size(each.bytes)}  sha256 {each.sha256[:12]}" for each in found]
    text = "\n".join(lines) or f"nothing is attached to {run}"
    print_result(AttachedFiles(run, found), text, as_json=as_json, output=())
