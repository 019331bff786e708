"""``fairlap runs``: list, remove, export, import, share and repair stored runs."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.commands.stored_runs.runs_attach import attach_command
from fairlap.cli.help import Group
from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.values import DATE, RUN, hand_over_bundle
from fairlap.cli.output import print_error, print_json, print_line, print_note
from fairlap.printable import joined_lines
from fairlap.suggestions import did_you_mean

if TYPE_CHECKING:
    from fairlap.store.file_store import Store
    from fairlap.store.foreign_points import ForeignPoint, ForeignSource
    from fairlap.store.search import RunSummary
    from fairlap.store.shared.sending import Carried


@click.group("runs", cls=Group, invoke_without_command=True)
@click.option("--model", default="", help="Only runs of this model.")
@click.option("--on", "on", default="", metavar="NAMES", help="Only runs with all of these contestants or frameworks.")
@click.option("--since", type=DATE, help="Only runs that began at DATE (UTC) or later.")
@click.option("--tag", default="", metavar="TAG", help="Only runs with this tag.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Largest number of runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, model: str, on: str, since: str | None, tag: str, limit: int, as_json: bool) -> None:
    """List stored runs, the newest first. `fairlap show RUN` shows one."""
    if ctx.invoked_subcommand is not None:
        return
    from msgspec import UNSET

    from fairlap.store.errors import NoSuchRun
    from fairlap.store.foreign_points import foreign_sources
    from fairlap.store.runs.listed_works import listed_works, with_titles
    from fairlap.store.search import RunSummaries, Wanted
    from fairlap.store.store import open_store

    found: list[RunSummary] = []
    sources: list[ForeignSource] = []
    try:
        with open_store(reading=True) as store:
            found, where = store.runs(Wanted(model, on, since or "", tag=tag), limit), store.where
            sources = [] if model or on or since or tag else store.ask(foreign_sources)
            meant = "" if found else _meant(store, {"--model": model, "--on": on, "--tag": tag})
    except NoSuchRun as error:
        print_json(RunSummaries(found)) if as_json else click.echo(str(error))
    else:
        if as_json:
            print_json(RunSummaries([with_titles(each) for each in found], foreign=sources or UNSET))
        elif found or sources:
            works = listed_works(found)
            for summary in found:
                click.echo(joined_lines(_fitting(line) for line in _lines(summary, works[summary.run])))
        else:
            print_line(f"no such run in {where}{meant}")
    for each in sources if not as_json else ():
        print_line(f"{each.points:,} values of {each.tool}, imported from {each.source} on {each.imported_at[:10]}")
    _note_waiting()


def _meant(store: Store, asked: Mapping[str, str]) -> str:
    """Suggest names for those that no stored run has."""
    from fairlap.store.figures import stored_contestants, stored_models
    from fairlap.store.runs.notes import stored_tags

    known = {"--model": stored_models, "--on": stored_contestants, "--tag": stored_tags}
    for option, given in ((option, name) for option, names in asked.items() for name in names.split(",")):
        names = store.ask(known[option]) if given else []
        if given not in names and (meant := did_you_mean(given, names)):
            return f"; {option} {given}: {meant}"
    return ""


@command.command("remove")
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN...")
def remove(runs: tuple[str, ...]) -> None:
    """Remove runs with all their samples; `asv` or another tool removes all values that were imported of it."""
    from fairlap.quantity_text import count
    from fairlap.store.foreign_points import TOOLS, remove_points
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        tools = [run for run in dict.fromkeys(runs) if run in TOOLS]
        found = [store.id_of(run) for run in runs if run not in tools]  # all, before the first is removed
        for run in dict.fromkeys(found):
            print_line(f"removed {store.remove(run)}")
        for tool in tools:
            with store.database(writing=True) as db:
                print_line(f"removed {count(remove_points(db, tool), 'value')} of {tool}")


@command.command("note")
@click.argument("run", type=RUN, metavar="RUN")
@click.argument("text")
def note(run: str, text: str) -> None:
    """Write a note about a run, in the place of the one that it had; '' removes it.

    `fairlap runs` and `fairlap show` print it, and a file of the run holds it.
    """
    from fairlap.store.runs.notes import write_note
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        run = store.id_of(run)
        with store.database(writing=True) as db:
            write_note(db, run, text)
        print_line(f"{run}: {text}" if text else f"{run} has no note")


@command.command("tag")
@click.argument("run", type=RUN, metavar="RUN")
@click.argument("tags", nargs=-1, metavar="TAG...")
@click.option("--remove", "removed", multiple=True, metavar="TAG", help="Take this tag away. Repeatable.")
def tag(run: str, tags: tuple[str, ...], removed: tuple[str, ...]) -> None:
    """Tag a run, to find it with `fairlap runs --tag TAG`; without TAG, print its tags."""
    from fairlap.store.runs.notes import change_tags
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        run = store.id_of(run)
        with store.database(writing=True) as db:
            has = change_tags(db, run, tags, removed)
        print_line(f"{run}: {', '.join(has) or 'no tags'}")


command.add_command(attach_command)


@command.command("export")
@click.argument("run", type=RUN, metavar="RUN")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(run: str, file: Path) -> None:
    """Write one run with all its samples to a file, for another store."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        store.export_to(run, file)
        print_line(f"wrote {store.id_of(run)} to {file}")


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--project", default="", help="Name the project of what another tool measured.")
def import_(files: tuple[Path, ...], project: str) -> None:
    """Store the runs of bundles and run files, written by `fairlap runs export` or, without samples, by `-o FILE.json`.

    Also what other tools measured, which `fairlap history TOOL` shows and no verdict uses: asv's folder `results`,
    `data.js` of github-action-benchmark, and files or the folder `.benchmarks` of pytest-benchmark.

    Nothing of a run or file is executed. What the plan of a run from elsewhere reaches is shown; running that plan
    again asks for --trust.
    """
    from fairlap.cli.races.plan_trust import print_reach
    from fairlap.history.foreign.foreign_files import points_in
    from fairlap.store.store import open_store

    with open_store() as store:
        for file in files:
            if (points := points_in(file, project)) is not None:
                _store_points(store, file, points)
                continue
            hand_over_bundle(file)
            run = _stored_run(store, file)
            print_line(f"stored {run}")
            if print_reach(store.plan_and_machine(run)[0]):
                print_note(f"`fairlap rerun {run}` asks for --trust before it runs these")


def _stored_run(store: Store, file: Path) -> str:
    from fairlap.errors import InvalidRequest
    from fairlap.history.foreign.file_reading import E_OTHER_TOOL
    from fairlap.history.foreign.foreign_files import why_unknown

    try:
        return store.import_from(file)
    except InvalidRequest as error:
        if error.code != "E_RUN_FILE" or not file.is_file() or not (why := why_unknown(file)):
            raise
        raise InvalidRequest(f"{file} is {why}", code=E_OTHER_TOOL) from None


def _store_points(store: Store, file: Path, points: Sequence[ForeignPoint]) -> None:
    from datetime import UTC, datetime

    from fairlap.quantity_text import count
    from fairlap.store.foreign_points import add_points

    with store.database(writing=True) as db:
        new = add_points(db, points, str(file), datetime.now(UTC).isoformat(timespec="seconds"))
    tools = ", ".join(sorted({each.tool for each in points})) or "no tool"
    print_line(f"stored {count(new, 'new value')} of {tools} from {file}; {len(points) - new:,} were there already")


@command.command("push")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--all", "everything", is_flag=True, help="Send every run that this machine has stored.")
@JSON
def push(runs: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Send runs of this machine to the shared store that FAIRLAP_STORE names.

    Without RUN and --all, send those that could not be sent when their races ended. A run that is there already is not
    sent again. Exit status: 1 when a run could not be sent.
    """
    from fairlap.errors import InvalidRequest
    from fairlap.store.opening import store_path
    from fairlap.store.shared.sender import Sender, named_address
    from fairlap.store.shared.sending import all_runs, push
    from fairlap.store.shared.shared_store import SharedStore
    from fairlap.store.store import open_store

    if runs and everything:
        raise InvalidRequest("give runs, or --all")
    address = named_address()
    path = store_path()
    with open_store(path) as local:
        if runs:
            chosen = list(dict.fromkeys(local.id_of(run) for run in runs))
        else:
            chosen = all_runs(local) if everything else Sender(address).waiting(path)
        with SharedStore(address) as shared:
            _report_carried(push(local, shared, chosen), len(chosen), as_json=as_json)


@command.command("pull")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@JSON
def pull(runs: tuple[str, ...], as_json: bool) -> None:
    """Copy runs from the shared store that FAIRLAP_STORE names to this machine; without RUN, all of them.

    A run that is here already is not copied again. Exit status: 1 when a run could not be copied.
    """
    from fairlap.store.opening import store_path
    from fairlap.store.shared.sender import named_address
    from fairlap.store.shared.sending import all_runs, pull
    from fairlap.store.shared.shared_store import SharedStore
    from fairlap.store.store import open_store

    with SharedStore(named_address(), reading=True) as shared, open_store(store_path()) as local:
        chosen = list(dict.fromkeys(shared.id_of(run) for run in runs)) if runs else all_runs(shared)
        _report_carried(pull(local, shared, chosen), len(chosen), as_json=as_json)


@command.command("repair")
def repair() -> None:
    """Copy what can be read of a damaged store into a new one, and keep the damaged file.

    This is the store of this machine, also where FAIRLAP_STORE names a shared one.
    """
    from fairlap.store.opening import store_path
    from fairlap.store.repair import repair_store

    click.echo(repair_store(store_path()).text)


def _report_carried(carried: Iterator[Carried], chosen: int, *, as_json: bool) -> None:
    """Print a line for each run that is new there, as soon as it is, and count the others."""
    from fairlap.store.shared.sending import CarriedRuns

    counts: Counter[str] = Counter()
    failures: dict[str, Carried] = {}
    listed = []
    for each in carried:
        counts[each.outcome] += 1
        listed.append(each)
        if each.outcome == "failed":
            failures.setdefault(each.message, each)
        elif each.outcome != "unchanged" and not as_json:
            print_line(f"{each.outcome} {each.run}" + (f" (was {each.was}, which another run has)" if each.was else ""))
    if as_json:
        print_json(CarriedRuns(listed))
    elif chosen:
        click.echo(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    else:
        click.echo("no run waits")
    for message, each in failures.items():
        print_error(message, each.code)
    if failures:
        raise SystemExit(1)


def _note_waiting() -> None:
    from fairlap.store.opening import shared_url, store_path

    if shared_url():
        from fairlap.quantity_text import count
        from fairlap.store.shared.sender import sender

        named = sender()
        if named and (waiting := named.waiting(store_path())):
            print_note(f"{count(len(waiting), 'run')} of this machine not sent yet; `fairlap runs push` sends them")


def _lines(summary: RunSummary, works: list[str]) -> list[str]:
    """One line; a run of several works has one more for each, and what people wrote about it has its own."""
    began = summary.began_at[:16].replace("T", " ") or "unknown time"
    head = f"{summary.run}  {began:<16}  {summary.state:<11}  {summary.processes_text:<16}"
    own = [f"tags: {', '.join(summary.tags)}"] if summary.tags else []
    own += [f"note: {line}" for line in summary.note.splitlines()[:1]]
    return [f"{head}  {works[0]}", *(f"{' ' * len(head)}  {line}" for line in (*works[1:], *own))]


def _fitting(line: str) -> str:
    """Cut at the width of a terminal; whole elsewhere."""
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 1]}…"
