"""``fairlap runs``: the runs that were kept, and what can be done with them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.output import print_json

if TYPE_CHECKING:
    from fairlap.store.search import RunSummary


def _a_date(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """In UTC, as the list shows them."""
    if value is None:
        return ""
    from fairlap.store.run_ids import utc_text

    text = utc_text(value)
    if not text:
        raise click.BadParameter(f"{value!r} is no date such as 2026-01-31 or 2026-01-31T14:00")
    return text


@click.group("runs", invoke_without_command=True)
@click.option("--model", default="", help="Only runs of this model.")
@click.option("--on", "on", default="", metavar="NAME", help="Only runs with this contestant or framework.")
@click.option("--since", callback=_a_date, metavar="DATE", help="Only runs that began then (UTC) or later.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def command(ctx: click.Context, model: str, on: str, since: str, limit: int, as_json: bool) -> None:
    """List the runs that were kept, the newest first. `fairlap show RUN` shows one."""
    if ctx.invoked_subcommand is not None:
        return
    from fairlap.store.opening import store_path
    from fairlap.store.search import Wanted
    from fairlap.store.store import open_store

    found: list[RunSummary] = []
    if store_path().exists():
        with open_store(reading=True) as store:
            found = store.runs(Wanted(model, on, since), limit)
    if as_json:
        print_json(found)
    elif found:
        for summary in found:
            click.echo("\n".join(_fitting(line) for line in _lines(summary)))
    elif store_path().exists():
        click.echo(f"no such run in {store_path()}")
    else:
        click.echo(f"no run has been kept yet; they will lie in {store_path()}")


@command.command("remove")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
def remove(runs: tuple[str, ...]) -> None:
    """Remove runs with all their samples."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        for run in dict.fromkeys([store.id_of(run) for run in runs]):  # all named before the first goes
            click.echo(f"removed {store.remove(run)}")


@command.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(run: str, file: Path) -> None:
    """Write one run with all its samples to a JSON file, to be taken into another store."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        store.export_to(run, file)
        click.echo(f"wrote {store.id_of(run)} to {file}")


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
def import_(files: tuple[Path, ...]) -> None:
    """Take in runs from files of `fairlap runs export`, or of `fairlap compare --json`, which hold no samples."""
    from fairlap.store.store import open_store

    with open_store() as store:
        for file in files:
            click.echo(f"took in {store.import_from(file)}")


@command.command("salvage")
def salvage_() -> None:
    """Move what can still be read of a damaged store into a new one, and keep the damaged file."""
    from fairlap.store.opening import store_path
    from fairlap.store.repair import repair_store

    click.echo(repair_store(store_path()).text)


def _lines(summary: RunSummary) -> list[str]:
    """One line; a run of several works has one more for each."""
    from fairlap.request.work import work_title

    began = summary.began_at[:16].replace("T", " ") or "at no known time"
    count = f"{summary.recorded_processes:>4} of {summary.planned_processes:<4}"
    head = f"{summary.run}  {began:<16}  {summary.state:<11}  {count}"
    works = [f"{work_title(work, summary.data)}: {_contestants(summary, work)}" for work in summary.works]
    return [f"{head}  {works[0]}", *(f"{' ' * len(head)}  {work}" for work in works[1:])]


def _fitting(line: str) -> str:
    """Cut at the edge of a terminal; whole for whatever else reads it."""
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _contestants(summary: RunSummary, work: str) -> str:
    """With their places, where there are some; else as they were named."""
    placed = [each for each in summary.placed if each.work == work]
    return ", ".join(f"{each.place or '-'} {each.contestant}" for each in placed) or ", ".join(summary.contestants)
