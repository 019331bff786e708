"""``fairlap suite``: races that are declared once and run as a whole."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlap.cli.help import Command, Group
from fairlap.cli.options.output_options import JSON, OUTPUT, OUTPUT_JSON, PASS_ENV, REQUIRED_CHANGES, writable
from fairlap.cli.options.values import DURATION, FILE, LARGEST_SLOWDOWN, NAME
from fairlap.cli.output import print_document, print_error, print_note, print_result, set_statuses
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.printed_document import PrintedDocument
from fairlap.request.suite import Kind, LeftOut

if TYPE_CHECKING:
    from fairlap.cli.races.suite_races import SuiteOptions
    from fairlap.render.outputs import Format
    from fairlap.request.suite import Suite
    from fairlap.request.units import LargestSlowdown
    from fairlap.suite.suite_document import SuiteDocument
    from fairlap.suite.suite_sides import Sides

_SUITE = click.Path(path_type=Path)
_NOT_COMPARABLE = 3
_E_SUITE = "E_SUITE"


class ListedRace(msgspec.Struct, frozen=True):
    name: str
    tags: tuple[str, ...]
    kind: str  # contestants, or two sides
    races: str  # what it races


class SuiteList(PrintedDocument, frozen=True, tag="fairlap.suite-list/1"):
    file: str
    sha256: str
    races: list[ListedRace]
    left_out: list[LeftOut]


_TAG = click.option(
    "--tag", "tags", multiple=True, type=NAME, metavar="TAG", help="Only races with this tag. Repeatable."
)
_ONLY = click.option("--only", multiple=True, type=NAME, metavar="NAME|REGEX", help="Only these races. Repeatable.")
_SHARD = click.option("--shard", type=NAME, metavar="N/OF", help="Every OF-th race from the N-th on: 2/5.")
_BASE = click.option("--base", metavar="FOLDER|COMMIT|RELEASE", help="One side: ./old, v1.2, or numpy==2.1.0.")
_CHANGE = click.option("--change", metavar="FOLDER|COMMIT|RELEASE", help="The other side; may not be slower.")


@click.group("suite", cls=Group)
def command() -> None:
    """Run many benchmarks as one: one error rate, one table, one exit status.

    A suite is a TOML file with a [[race]] for each benchmark, one that comes with fairlap, or existing benchmarks: of
    asv, pytest-benchmark, Google Benchmark, nvbench or criterion.
    """


@command.command(
    "run",
    cls=Command,
    essential="tag only base change max-slowdown budget require output json strict",
    examples="""
fairlap suite run suite.toml --tag quick -o suite.json -o suite.html
    Run the races with a tag, and write the result and a page.
fairlap suite run suite.toml --base main --change candidate
    Race every call and command of the suite between two folders; fail when one is slower.
fairlap suite run benchmarks/ --base v1.2 --change HEAD --only 'time_.*solve'
    Race benchmarks of asv or pytest-benchmark between two commits, without a change in them.
fairlap suite run suite.toml --resume suite.json -o suite.json
    Run what is missing.
fairlap suite run deepbench --tag device -o deepbench.html
    Run a part of a suite that comes with fairlap; `fairlap list suites` lists them.
""",
)
@click.argument("file", type=_SUITE, metavar="SUITE.toml|NAME|BENCHMARKS")
@_TAG
@_ONLY
@_SHARD
@_BASE
@_CHANGE
@click.option("--max-slowdown", type=LARGEST_SLOWDOWN, help="Largest acceptable one of BENCHMARKS.  [default: 2%]")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of BENCHMARKS.  [default: all cores]")
@REQUIRED_CHANGES
@click.option("--strict", is_flag=True, help="Fail with status 2 when a comparison with a bound is inconclusive.")
@click.option("--budget", type=DURATION, help="Duration of the whole suite.  [default: each race has its own]")
@click.option("--resume", type=FILE, metavar="RESULT.json", help="Run what this result lacks.")
@click.option("--trust", is_flag=True, help="Allow files of your own models to run code.")
@PASS_ENV
@OUTPUT
@click.option("--store/--no-store", default=True, help="Store the runs; see `fairlap runs`.  [default: store]")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@JSON
def run(
    file: Path, resume: Path | None, output: tuple[Path, ...], as_json: bool, base: str | None, change: str | None,
    max_slowdown: LargestSlowdown | None, threads: int | None, **given: Any,
) -> None:  # fmt: skip
    """Run the races of a suite, one after the other in drawn order.

    All differences that are claimed share one 5 %. With --base and --change every call and command races between these
    two sides, and the others are left out; without, races of contestants run and those are left out.

    BENCHMARKS is a folder or file of asv or pytest-benchmark, a program of Google Benchmark or nvbench, or the
    Cargo.toml of criterion.

    Ctrl-C keeps what was measured, and --resume runs the rest.

    Exit status: 0 when all have a result and are within their bounds or inconclusive, 1 when a race has no result or a
    larger slowdown is shown, 2 when inconclusive with --strict or for an invalid request, 130 after Ctrl-C. With --base
    as of `fairlap gate`: 3 when something is not comparable or the request is invalid.
    """
    from fairlap.cli.races.suite_races import run_suite
    from fairlap.render.encoders import SUFFIXES
    from fairlap.suite.found_suites import FoundOptions, open_suite
    from fairlap.suite.suite_document import read_suite_document
    from fairlap.suite.suite_page import document_of
    from fairlap.suite.suite_sides import suite_sides

    if base is not None:
        set_statuses(error=_NOT_COMPARABLE, loss=_NOT_COMPARABLE)
    sides_given, base_given = base is not None or change is not None, base is not None
    try:
        files = writable(output, only=SUFFIXES)
        resumed = None if resume is None else read_suite_document(resume)
        if resumed is not None and not sides_given:
            base, change = resumed.base, resumed.change
        with suite_sides(base, change) as sides:
            suite = open_suite(file, FoundOptions.of(sides, given["pass_env"], max_slowdown, threads), print_note)
            if resumed is not None:
                _require_same(suite, resumed, given, sides=sides_given)
            options = _options(resumed, sides, **given)
            found = run_suite(suite, options, resumed, partial(_save, files))
    except FairlapError as error:
        if not base_given:
            raise
        print_error(str(error), error.code, as_json=as_json)
        raise SystemExit(_NOT_COMPARABLE) from None
    if found.state == "interrupted":
        files = _with_result(files, found)
    status = print_document(document_of(found), as_json=as_json, files=files)
    if found.state == "interrupted":
        print_note(f"resume with: {_how_to_resume(file, files, max_slowdown, threads, as_json=as_json, **given)}")
    raise SystemExit(found.exit_status or status)


def _save(files: list[tuple[Path, Format]], found: SuiteDocument) -> None:
    """Write the result, which survives a kill."""
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.render.encoders import encoded
    from fairlap.suite.suite_page import document_of

    for path, chosen in files:
        if chosen.name == "json":
            write_output(path, encoded(document_of(found), "json"))


def _how_to_resume(
    suite: Path, files: list[tuple[Path, Format]], max_slowdown: float | None, threads: int | None, *, as_json: bool,
    budget: float | None, trust: bool, store: bool, quiet: bool, pass_env: tuple[str, ...], require: tuple[str, ...],
    **_kept: Any,
) -> str:  # fmt: skip
    """Build the command that runs the rest; the result keeps what was selected."""
    kept = next(path for path, chosen in files if chosen.name == "json")
    words = ["fairlap", "suite", "run", str(suite), "--resume", str(kept)]
    words += [word for path, _ in files for word in ("-o", str(path))]
    words += [] if budget is None else ["--budget", f"{float(budget):g}s"]
    words += [] if max_slowdown is None else ["--max-slowdown", f"{float(max_slowdown):g}"]
    words += [] if threads is None else ["--threads", str(threads)]
    words += [word for name in pass_env for word in ("--pass-env", name)]
    words += [word for text in require for word in ("--require", text)]
    flags = {"--trust": trust, "--no-store": not store, "--quiet": quiet, "--json": as_json}
    return shlex.join([*words, *(flag for flag, given in flags.items() if given)])


def _options(
    resumed: SuiteDocument | None, sides: Sides, *, tags: tuple[str, ...], only: tuple[str, ...], shard: str | None,
    strict: bool, budget: float | None, trust: bool, store: bool, quiet: bool, pass_env: tuple[str, ...],
    require: tuple[str, ...],
) -> SuiteOptions:  # fmt: skip
    """Choose the options; a suite that is resumed keeps those that decide what is run."""
    from fairlap.cli.races.suite_races import SuiteOptions
    from fairlap.request.suite import Selection, shard_in
    from fairlap.verdict import required_changes_of

    if resumed is not None:
        selection, strict = resumed.selection, resumed.strict
    else:
        selection = Selection(tags=tags, only=only, shard=None if shard is None else shard_in(shard))
    return SuiteOptions(
        selection=selection, sides=sides.folders, packages=sides.packages, named=sides.named, strict=strict,
        budget_s=None if budget is None else float(budget), trust=trust, store=store, quiet=quiet, pass_env=pass_env,
        required=required_changes_of(require),
    )  # fmt: skip


def _require_same(suite: Suite, resumed: SuiteDocument, given: dict[str, Any], *, sides: bool) -> None:
    if resumed.sha256 != suite.sha256 and Path(resumed.file).absolute() != suite.path.absolute():
        raise InvalidRequest(
            f"this result is of {resumed.file}, not of {suite.path}; name that suite, or leave --resume out",
            code=_E_SUITE,
        )
    if resumed.sha256 != suite.sha256:
        raise InvalidRequest(
            f"{suite.path} has changed since this result (SHA-256); run it from the start", code=_E_SUITE
        )
    if resumed.state == "finished":
        raise InvalidRequest(f"suite {resumed.suite} is finished; there is nothing to resume", code=_E_SUITE)
    if sides or any(given[name] for name in ("tags", "only", "shard", "strict")):
        raise InvalidRequest(
            "a resumed suite keeps its selection, its sides and --strict; leave these options out", code=_E_SUITE
        )


def _with_result(files: list[tuple[Path, Format]], found: SuiteDocument) -> list[tuple[Path, Format]]:
    """Keep what was measured, also where no file was asked for."""
    if any(chosen.name == "json" for _, chosen in files):
        return files
    return [*files, *writable((Path(f"suite-{found.suite}.json"),))]


@command.command(
    "list",
    cls=Command,
    examples="""
fairlap suite list suite.toml
    List the races with their tags.
fairlap suite list benchmarks/ --change v1.3 --base v1.2 --only solve
    List the benchmarks of asv and pytest-benchmark that `fairlap suite run` would race, without racing them.
""",
)
@click.argument("file", type=_SUITE, metavar="SUITE.toml|NAME|BENCHMARKS")
@_TAG
@_ONLY
@_SHARD
@_BASE
@_CHANGE
@PASS_ENV
@OUTPUT_JSON
@JSON
def list_races(
    file: Path, tags: tuple[str, ...], only: tuple[str, ...], shard: str | None, base: str | None, change: str | None,
    pass_env: tuple[str, ...], output: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """List the races of a suite: names, tags, and what each races.

    Options select as in `fairlap suite run`; what is left out is listed with the reason.
    """
    from fairlap.request.suite import IN_ANOTHER_SHARD, Selection, of_shard, shard_in
    from fairlap.suite.found_suites import FoundOptions, open_suite
    from fairlap.suite.suite_sides import suite_sides

    selection = Selection(tags=tags, only=only, shard=None if shard is None else shard_in(shard))
    with suite_sides(base, change) as sides:
        suite = open_suite(file, FoundOptions.of(sides, pass_env, None, None), print_note)
        kind: Kind | None = "two sides" if sides.folders else None
    selected = suite.selected(selection, kind)
    own = of_shard(selected, selection.shard)
    elsewhere = [LeftOut(each.name, IN_ANOTHER_SHARD) for each in selected if each not in own]
    listed = [ListedRace(each.name, each.tags, each.kind, each.what) for each in own]
    found = SuiteList(str(suite.path), suite.sha256, listed, [*suite.left_out(selection, kind), *elsewhere])
    print_result(found, _text_of(found), as_json=as_json, output=output)


def _text_of(found: SuiteList) -> str:
    from fairlap.printable import joined_lines
    from fairlap.render.encoders.text import aligned

    rows = [[each.name, ",".join(each.tags), each.kind, each.races] for each in found.races]
    lines = aligned([["race", "tags", "between", "what"], *rows])
    if found.left_out:
        lines = [*lines, "", *aligned([["left out", "why"], *([each.name, each.why] for each in found.left_out)])]
    return joined_lines(lines)


@command.command(
    "show",
    cls=Command,
    examples="""
fairlap suite show suite.json -o suite.html
    Write the result of a suite as a page.
""",
)
@click.argument("file", type=FILE, metavar="RESULT.json")
@OUTPUT
@JSON
def show(file: Path, output: tuple[Path, ...], as_json: bool) -> None:
    """Show the result of a suite again: verdicts, works, and what was left out."""
    from fairlap.render.encoders import SUFFIXES
    from fairlap.suite.suite_document import read_suite_document
    from fairlap.suite.suite_page import document_of

    files = writable(output, only=SUFFIXES)
    raise SystemExit(print_document(document_of(read_suite_document(file)), as_json=as_json, files=files))
