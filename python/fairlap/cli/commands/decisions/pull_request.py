"""``fairlap pull-request``: race a change against its base, and comment with the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.commands.stored_runs.gate import GateCommand
from fairlap.cli.options.output_options import REQUIRED_CHANGES, WAIT, writable
from fairlap.cli.options.values import DURATION, FILE, LARGEST_SLOWDOWN
from fairlap.cli.output import print_error, print_note

if TYPE_CHECKING:
    from fairlap.pull_request.event import Job
    from fairlap.race.run import Run
    from fairlap.request.gate_file import GateRules

_NOT_COMPARABLE = 3
_BASE, _CHANGE = "base", "change"
_SECTIONS = {
    "What to race": "command call suite base prepare pass-env same-output reported",
    "How": "threads budget blocks wait",
    "When it fails": "baseline max-slowdown require strict",
    "The run and the comment": "output body post name charts author number comment",
    "Help": "h help",
}


@click.command(
    "pull-request",
    cls=GateCommand,
    sections=_SECTIONS,
    essential="command call suite base prepare threads budget max-slowdown strict output body comment",
    examples="""
fairlap pull-request --command './benchmark --size 10' --prepare make
    Race the change against its base, and comment on it.
fairlap pull-request --call my_package.benchmarks.parse --max-slowdown 5%
    Race a callable; fail when it is shown to be slower by more than 5 %.
""",
)
@click.argument("run_name", required=False, metavar="[RUN]")
@click.option("--command", "run_command", metavar="COMMAND", help="Program to race, run in both checkouts.")
@click.option("--call", metavar="MODULE.CALLABLE", help="Python callable to race, imported from both checkouts.")
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="SUITE.toml|BENCHMARKS",
    help="Race all of a suite, or existing benchmarks.",
)
@click.option("--base", metavar="COMMIT|FOLDER", help="Base of the change.  [default: what it is merged into]")
@click.option("--prepare", "prepared_by", metavar="SHELL", help="Shell command that prepares each checkout: 'make'.")
@click.option(
    "--pass-env", multiple=True, metavar="NAME", help="Pass a variable that looks like a secret to both. Repeatable."
)
@click.option("--same-output", is_flag=True, help="Disqualify a command that prints something else than the base.")
@click.option(
    "--reported", metavar="FORMAT[:NAME]", help="Race by the time that the command reports, as `compare` does."
)
@click.option("--threads", type=int, help="Threads of either side.  [default: all cores]")
@click.option("--budget", type=DURATION, help="Race until it is decided, or for DURATION.  [default: 60s to 150s]")
@click.option("--blocks", type=int, help="Run a fixed number of blocks.")
@WAIT
@click.option("--baseline", metavar="NAME", help=f"With RUN: its baseline contestant.  [default: {_BASE}]")
@click.option("--max-slowdown", type=LARGEST_SLOWDOWN, help="Largest acceptable slowdown.  [default: 2%]")
@REQUIRED_CHANGES
@click.option("--strict", is_flag=True, help="Fail with status 2 when inconclusive.")
@click.option(
    "-o", "--output", multiple=True, type=FILE, metavar="FILE", help="Write the run, as `fairlap compare` does."
)
@click.option("--body", type=FILE, metavar="FILE.md", help="Write the comment to a file.")
@click.option("--post", type=FILE, metavar="FILE.md", help="Only post a comment that --body wrote.")
@click.option("--name", default="benchmark", help="Name of the comment, if several are wanted.  [default: benchmark]")
@click.option("--charts", metavar="URL", default="", help="Address of the charts.  [default: the job's page]")
@click.option("--author", default="", help="Login whose comments are updated.  [default: any bot's]")
@click.option("--number", type=click.IntRange(min=1), help="Number of the pull request, outside of GitHub Actions.")
@click.option("--comment/--no-comment", "comments", default=True, help="Comment if a token is set.  [default: comment]")
def command(post: Path | None, comments: bool, number: int | None, author: str, name: str, **given: Any) -> None:
    """Race a change against its base, and comment on the pull request.

    Give --command or --call, which is raced in a checkout of the base and in the current folder, in the same blocks.
    Or give RUN, a run file in which base and change have raced already. --suite races all that a suite declares, with
    its own bounds, and makes one comment.

    In GitHub Actions the pull request, the repository and the base are known from the job. The comment needs
    GITHUB_TOKEN; without it the text goes to the job's summary alone. A comment that fails changes no status.

    The race goes on until it is shown whether the change is slower by more than --max-slowdown, and whether it meets
    --require. `gate.toml` in the current folder may hold both, and strict; options replace them.

    Exit status: as of `fairlap gate`: 0 when the change is within the bounds, or inconclusive, 1 when one is shown to
    be exceeded, 2 when inconclusive with --strict, 3 when not comparable, for example because the base lacks the
    benchmark.
    """
    from fairlap.errors import FairlapError
    from fairlap.pull_request.comment_text import marker
    from fairlap.pull_request.event import job_in, token_taken_from

    token = token_taken_from(os.environ)
    try:
        marker(name)
        job = job_in(os.environ, number)
        status, body = (0, _read(post, name, given["charts"])) if post is not None else _judged(job, name, **given)
    except FairlapError as error:
        print_error(str(error), error.code)
        raise SystemExit(_NOT_COMPARABLE) from None
    if post is None:
        _summarise(job, body)
    if comments:
        _comment(job, body, name, token, author)
    raise SystemExit(status)


def _judged(
    job: Job, name: str, *, body: Path | None, suite: Path | None, max_slowdown: float | None, require: tuple[str, ...],
    strict: bool, **given: Any,
) -> tuple[int, str]:  # fmt: skip
    """Judge the run or the suite, and return the exit status and the text of the comment."""
    from fairlap.history.gate import require_known
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.pull_request.checkouts import NoBaseline, NotPrepared
    from fairlap.pull_request.comment_text import without_base
    from fairlap.request.gate_file import gate_rules

    rules = gate_rules(max_slowdown, strict=strict, require=require)
    require_known(rules.required)
    try:
        if suite is not None:
            status, text = _judged_suite(job, name, suite, rules, max_slowdown, **given)
        else:
            status, text = _judged_run(job, name, rules, **given)
    except (NoBaseline, NotPrepared) as error:
        print_error(str(error), error.code)
        bound = None if suite else rules.max_slowdown
        status, text = _NOT_COMPARABLE, without_base(name, str(error), max_slowdown=bound)
    if body is not None:
        write_output(body, text.encode())
    return status, text


def _judged_suite(
    job: Job, name: str, suite: Path, rules: GateRules, max_slowdown: float | None, *, charts: str,
    output: tuple[Path, ...], base: str | None, prepared_by: str | None, pass_env: tuple[str, ...],
    budget: float | None, threads: int | None, **others: Any,
) -> tuple[int, str]:  # fmt: skip
    """Race the suite, which has all that the other options say of one benchmark; one of another tool has no bounds."""
    from fairlap.cli.races.suite_races import SuiteOptions, run_suite
    from fairlap.errors import InvalidRequest
    from fairlap.machine.files.atomic_files import write_output
    from fairlap.pull_request.comment_text import comment_text
    from fairlap.render.encoders import SUFFIXES, encoded
    from fairlap.render.encoders.markdown import markdown_of
    from fairlap.render.encoders.text import text_of
    from fairlap.request.units import LargestSlowdown
    from fairlap.suite.found_suites import FoundOptions, is_own_file, open_suite
    from fairlap.suite.suite_document import findings_in, trades_in
    from fairlap.suite.suite_page import document_of, without_verdicts
    from fairlap.suite.suite_sides import Sides

    own_file = is_own_file(suite)
    if own_file:
        others |= {"max_slowdown": max_slowdown, "threads": threads}
    if given := next((option for option, value in others.items() if value), ""):
        option = {"run_command": "--command", "run_name": "RUN"}.get(given, f"--{given.replace('_', '-')}")
        raise InvalidRequest(f"a suite has its own races and bounds; leave {option} out", code="E_PULL_REQUEST")
    files = writable(output, only=SUFFIXES)
    with _both_sides(job, base, prepared_by, pass_env) as sides:
        bound = None if own_file else LargestSlowdown(rules.max_slowdown)
        found = open_suite(suite, FoundOptions.of(Sides(sides), pass_env, bound, threads), print_note)
        options = SuiteOptions(
            sides=sides, budget_s=budget, strict=rules.strict, store=False, pass_env=pass_env, required=rules.required
        )
        result = run_suite(found, options)
    if result.exit_status > _NOT_COMPARABLE:  # Ctrl-C
        raise SystemExit(result.exit_status)
    shown, findings = document_of(result), findings_in(result.races)
    for path, chosen in files:
        write_output(path, encoded(shown, chosen.name))
    click.echo(text_of(shown))
    table = markdown_of(without_verdicts(shown))
    return result.exit_status, comment_text(
        name,
        findings,
        [],
        max_slowdown=None,
        charts=charts or job.page,
        table=table,
        trades=trades_in(result.races),
    )


def _judged_run(
    job: Job, name: str, rules: GateRules, *, baseline: str | None, charts: str, output: tuple[Path, ...], **given: Any
) -> tuple[int, str]:  # fmt: skip
    """Judge the run, write its files, and return the exit status and the text of the comment."""
    from fairlap.history.gate import overall
    from fairlap.pull_request.comment_text import comment_text
    from fairlap.render.outputs import UnknownFormat, write_all
    from fairlap.results.results import results_of

    against, files = baseline or _BASE, writable(output)
    for path, chosen in files:
        if chosen.content == "training":
            raise UnknownFormat(f"{path} logs training to a score, which has no part in a pull request; leave it out")
    run, run_id = _run(job, output=output, rules=rules, **given)
    bound = rules.max_slowdown
    results = results_of(run, run_id, baseline=against, max_slowdown=bound, required=rules.required or None)
    findings, trades = results.findings_against(against, max_slowdown=bound), results.trades_against(against)
    text = comment_text(name, findings, results.rows, max_slowdown=bound, charts=charts or job.page, trades=trades)
    click.echo("\n".join([*map(str, findings), *(f"trade: {each}" for each in trades)]))
    for failure in write_all(files, results):
        print_error(failure, "E_FILE")
    return int(overall(findings, strict=rules.strict)), text


def _run(
    job: Job, *, run_name: str | None, run_command: str | None, call: str | None, base: str | None,
    prepared_by: str | None, rules: GateRules, **options: Any,
) -> tuple[Run, str]:  # fmt: skip
    """Load the run that was named, or race now."""
    from fairlap.errors import InvalidRequest
    from fairlap.pull_request.sides import callables, programs
    from fairlap.store.runs.run_sources import run_named

    if sum(each is not None for each in (run_name, run_command, call)) != 1:
        raise InvalidRequest("give one of --command, --call, --suite and RUN", code="E_PULL_REQUEST")
    if run_name is not None:
        return run_named(run_name)
    with _both_sides(job, base, prepared_by, options["pass_env"]) as sides:
        return _raced(
            programs(run_command, sides, options["reported"] or "", options["pass_env"])
            if run_command is not None
            else callables(str(call), sides),
            rules,
            **options,
        )


@contextmanager
def _both_sides(
    job: Job, base: str | None, prepared_by: str | None, pass_env: tuple[str, ...]
) -> Iterator[dict[str, Path]]:
    """Check out the base, and prepare both folders."""
    from fairlap.pull_request.checkouts import NoBaseline, base_checkout, base_commit, prepare

    change = Path.cwd()
    commit = base or base_commit(change, job.pull_request)
    if not commit:
        raise NoBaseline("the base of the change is not known; name it with --base")
    with ExitStack() as stack:
        folder = Path(commit).absolute()
        if not folder.is_dir():
            folder = stack.enter_context(base_checkout(change, commit))
        if prepared_by is not None:
            for place, side in ((folder, _BASE), (change, _CHANGE)):
                print_note(f"preparing {side}: {prepared_by}")
                prepare(place, prepared_by, pass_env, is_base=side == _BASE)
        yield {_BASE: folder, _CHANGE: change}


def _raced(
    contestants: dict[str, Any], rules: GateRules, *, output: tuple[Path, ...], **options: Any
) -> tuple[Run, str]:
    from fairlap.cli.races.run_race import checked_output, run_race
    from fairlap.machine.files.scratch_folder import ScratchFolder
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.race.planning.plan_required import with_required
    from fairlap.render.outputs import format_of
    from fairlap.request.race_request import RaceRequest
    from fairlap.results.decision.required_measured import require_measured
    from fairlap.store.runs.run_file import load_run

    kept = {key: value for key, value in options.items() if value is not None} | {"max_slowdown": rules.max_slowdown}
    with ScratchFolder() as scratch:
        file = scratch / "run.json"
        kept_on_the_way = [path for path in output if format_of(path).name == "json"]
        request = RaceRequest(**contestants, **kept, baseline=_BASE, output=(*kept_on_the_way, file))
        race_output = checked_output(request, request, store=False)
        plan = with_required(plan_of(request, print_note), rules.required)
        require_measured(plan)
        status = run_race(plan, race_output)
        if status > _NOT_COMPARABLE:  # Ctrl-C
            raise SystemExit(status)
        return load_run(file), next((path.stem for path in output), _CHANGE)


def _read(file: Path, name: str, charts: str) -> str:
    from fairlap.errors import InvalidRequest, reason_of
    from fairlap.machine.files.regular_file import content_of
    from fairlap.pull_request.comment_text import require_marked, with_charts

    try:
        body = content_of(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {file}: {reason_of(error)}", code="E_PULL_REQUEST") from None
    require_marked(body, name)
    return with_charts(body, charts)


def _summarise(job: Job, body: str) -> None:
    if job.summary is None:
        return
    try:
        with job.summary.open("a", encoding="utf-8") as file:
            file.write(f"{body}\n")
    except OSError as error:
        print_error(f"cannot write the job's summary: {error.strerror}", "E_FILE")


def _comment(job: Job, body: str, name: str, token: str, author: str) -> None:
    from fairlap.pull_request.comment_text import marker
    from fairlap.pull_request.comments import CannotComment, Comments

    if why := job.why_no_comment(token):
        print_note(f"no comment: {why}")
        return
    assert job.pull_request is not None
    try:
        address = Comments(job.api, job.pull_request, token, author=author).put(body, marker(name))
    except CannotComment as error:
        print_error(str(error), error.code)
        return
    print_note(f"commented: {address}")
