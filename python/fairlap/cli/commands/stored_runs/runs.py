"""``fairlap runs``: list, remove, export, import and repair stored runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.output import print_json
from fairlap.cli.values import DATE

if TYPE_CHECKING:
    from fairlap.store.search import RunSummary


@click.group("runs", invoke_without_command=True)
@click.option("--model", default="", help="Only runs of this model.")
@click.option("--on", "on", default="", metavar="NAME", help="Only runs with this contestant or framework.")
@click.option("--since", type=DATE, help="Only runs that began at DATE (UTC) or later.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Largest number of runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, model: str, on: str, since: str | None, limit: int, as_json: bool) -> None:
    """List stored runs, the newest first. `fairlap show RUN` shows one."""
    if ctx.invoked_subcommand is not None:
        return
    from fairlap.store.opening import store_path
    from fairlap.store.search import Wanted
    from fairlap.store.store import open_store

    found: list[RunSummary] = []
    if store_path().exists():
        with open_store(reading=True) as store:
            found = store.runs(Wanted(model, on, since or ""), limit)
    if as_json:
        print_json(found)
    elif found:
        for summary in found:
            click.echo("\n".join(_fitting(line) for line in _lines(summary)))
    elif store_path().exists():
        click.echo(f"no such run in {store_path()}")
    else:
        click.echo(f"no runs yet; `fairlap compare` stores them in {store_path()}")


@command.command("remove")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
def remove(runs: tuple[str, ...]) -> None:
    """Remove runs with all their samples."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        for run in dict.fromkeys([store.id_of(run) for run in runs]):  # all are found before the first is removed
            click.echo(f"removed {store.remove(run)}")


@command.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(run: str, file: Path) -> None:
    """Write one run with all its samples to a file, for another store."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        store.export_to(run, file)
        click.echo(f"wrote {store.id_of(run)} to {file}")


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
def import_(files: tuple[Path, ...]) -> None:
    """Store the runs of run files, written by `fairlap runs export` or, without samples, by `-o FILE.json`."""
    from fairlap.store.store import open_store

    with open_store() as store:
        for file in files:
            click.echo(f"stored {store.import_from(file)}")


@command.command("repair")
def repair() -> None:
    """Copy what can be read of a damaged store into a new one, and keep the damaged file."""
    from fairlap.store.opening import store_path
    from fairlap.store.repair import repair_store

    click.echo(repair_store(store_path()).text)


def _lines(summary: RunSummary) -> list[str]:
    """One line; a run of several works has one more for each."""
    from fairlap.request.work import work_title

    began = summary.began_at[:16].replace("T", " ") or "unknown time"
    count = f"{summary.recorded_processes:>4} of {summary.planned_processes:<4}"
    head = f"{summary.run}  {began:<16}  {summary.state:<11}  {count}"
    works = [f"{work_title(work, summary.data)}: {_contestants(summary, work)}" for work in summary.works]
    return [f"{head}  {works[0]}", *(f"{' ' * len(head)}  {work}" for work in works[1:])]


def _fitting(line: str) -> str:
    """Cut at the width of a terminal; whole elsewhere."""
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _contestants(summary: RunSummary, work: str) -> str:
    """With their places, if known."""
    placed = [each for each in summary.placed if each.work == work]
    return ", ".join(f"{each.place or '-'} {each.contestant}" for each in placed) or ", ".join(summary.contestants)
