"""``fairlap show RUN``: the answer of a stored run, with the machine, settings and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap import quantity_text
from fairlap.cli.help import Command
from fairlap.cli.options.output_options import FOR, JSON, OUTPUT, PRICE_OPTION, REQUIRE, writable
from fairlap.cli.options.values import RUN_OR_FILE
from fairlap.cli.output import print_json
from fairlap.printable import joined_lines

if TYPE_CHECKING:
    from fairlap.race.run import Run
    from fairlap.request.work import Work
    from fairlap.results.results import Results
    from fairlap.results.row import Row
    from fairlap.scenarios.process_result import ProcessResult
    from fairlap.store.search import State
    from fairlap.verdict import Comparison


@click.command(
    "show",
    cls=Command,
    examples="""
fairlap show last
    Show the newest run again.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@click.option("--errors", is_flag=True, help="Show numerical errors and the last output of lost processes.")
@PRICE_OPTION
@REQUIRE
@FOR
@OUTPUT
@JSON
def command(
    run: str,
    errors: bool,
    price: str | None,
    require: str | None,
    use: str | None,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Show a run: the answer, how sure it is, machine, settings and warnings.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file or a bundle.
    """
    from fairlap.results.decision.question import question_of, with_decision
    from fairlap.results.prices import price_named
    from fairlap.results.results import results_of
    from fairlap.store.runs.run_file import run_document

    question, priced = question_of(require or "", use or ""), price_named(price) if price else None
    saved, run_id, state, rows = _found(run)
    from fairlap.render.outputs import write
    from fairlap.render.text.terminal import text_of

    results = with_decision(results_of(saved, run_id, price=priced), question)
    for path, chosen in writable(output):
        write(path, results, chosen)
    if as_json:
        print_json(run_document(saved, results, state=state, rows=None if priced else rows))
        return
    parts = [_head(run_id, state, saved, [] if Path(run).exists() else _attached(run_id))]
    if saved.processes:
        parts += [text_of(results, in_full=True), *_claims(results), joined_lines(_beneath(saved))]
    if errors:
        parts.append(joined_lines(_errors(saved)))
    click.echo("\n\n".join(parts))


def _found(name: str) -> tuple[Run, str, State, list[Row] | None]:
    """Find the run of a file or of the store, with its id, its state and its rows; None of a file that has none."""
    from fairlap.store.runs.run_file import load_run_file, state_of
    from fairlap.store.store import open_store

    if Path(name).exists():
        file = load_run_file(Path(name))
        return file, file.id, state_of(file), file.rows or None
    with open_store(reading=True) as store:
        run_id = store.id_of(name)
        return store.load(run_id), run_id, store.state(run_id), store.rows(run_id)


def _attached(run_id: str) -> list[str]:
    from fairlap.store.opening import store_path
    from fairlap.store.runs.attached import attached_folder, attached_names

    return attached_names(attached_folder(store_path(), run_id))


def _head(run_id: str, state: State, saved: Run, attached: list[str]) -> str:
    began = f", began {saved.began_at}" if saved.began_at else ""
    lines = [
        f"run {run_id}: {state}, {saved.plan.counted(len(saved.processes))}{began},"
        f" fairlap {saved.fairlap}, seed {saved.plan.seed}"
    ]
    if saved.ended_early:
        lines.append(f"ended: {saved.ended_early}")
    lines += [f"tags: {', '.join(saved.tags)}"] if saved.tags else []
    lines += [f"note: {saved.note}"] if saved.note else []
    lines += [f"attached: {', '.join(attached)}"] if attached else []
    return joined_lines(lines)


def _claims(results: Results) -> list[str]:
    """Say how sure the verdicts of the fastest are, what they rest on and what would refute them."""
    from fairlap.explanations import paragraphs_of_a_claim

    lines = []
    for work in results.works():
        found = results.of_work(work)[0]
        first = found.standing.places[0].contestant if found.standing else ""
        lines += [f"  {_claim(each)}" for each in found.comparisons if first in (each.a, each.b)]
    return (
        [joined_lines(["how sure this is", *lines, *(f"  {text}" for text in paragraphs_of_a_claim())])]
        if lines
        else []
    )


def _claim(compared: Comparison) -> str:
    from fairlap.verdict import Verdict, sentence

    equivalent = compared.verdict is Verdict.EQUIVALENT
    interval = compared.equivalence_interval if equivalent else compared.interval
    p = compared.p_equivalent_adjusted if equivalent else compared.p_adjusted
    confidence, level = quantity_text.share(1 - interval.level, 3), quantity_text.share(compared.level)
    tested = f"interval at {confidence}, p = {quantity_text.number(p, 2)}, tested at {level}"
    return f"{sentence(compared)}; {tested}"


def _beneath(saved: Run) -> list[str]:
    lines = ["machine"]
    lines += [f"  {fact}: {value}" for fact, value in saved.machine.items()]
    scales = {work.id: work.scale.text for work in saved.plan.works if work.scale is not None}
    for name in (contestant.text for contestant in saved.plan.contestants):
        processes = [process for process in saved.processes if process.contestant == name]
        versions = (
            ", ".join(dict.fromkeys(process.version for process in processes if process.version)) or "version unknown"
        )
        same, by_scale = _settings(processes, scales)
        lines.append(f"{name} ({versions}): {_listed(same) or ('' if by_scale else 'settings unknown')}".rstrip())
        lines += [f"  {scale}: {_listed(own)}" for scale, own in by_scale.items()]
        lines += [f"  ! {text}" for text in _warnings(processes)]
    return lines


def _settings(
    processes: Sequence[ProcessResult], scales: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Those that are the same at all scales, and those that differ, by scale; ``scales`` has that of each work."""
    by_scale: dict[str, dict[str, str]] = {}
    for process in processes:
        if process.in_force:
            by_scale.setdefault(scales.get(process.work_id, ""), process.in_force)
    first = next(iter(by_scale.values()), {})
    same = {name: value for name, value in first.items() if all(own.get(name) == value for own in by_scale.values())}
    differing = {
        scale: {name: value for name, value in own.items() if name not in same} for scale, own in by_scale.items()
    }
    return same, {scale: own for scale, own in differing.items() if own}


def _listed(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{setting} {value}" for setting, value in settings.items())


def _warnings(processes: Sequence[ProcessResult]) -> list[str]:
    """Show the first warning of each code, and in how many processes it occurred."""
    from fairlap.render.repeated_warnings import warning_kinds

    lines = []
    for kind in warning_kinds((process.contestant, process.warnings) for process in processes):
        count = kind.by_contestant.total()
        often = "in one process" if count == 1 else f"similar in {count} processes"
        lines.append(f"{kind.first.text} ({often}) [{kind.first.code}]")
    return lines


def _errors(saved: Run) -> list[str]:
    """List each contestant's largest error of every array, then the messages of processes that were lost."""
    lines = ["distance from the reference, the worst of all processes"]
    worst: dict[tuple[str, str, str], float] = {}
    for process in saved.processes:
        for error in process.errors:
            key = (process.work_id, process.contestant, error.what)
            worst[key] = max(worst.get(key, 0.0), error.distance)
    lines += [
        f"  {saved.plan.work_with(work_id).label} · {name} · {what}: {quantity_text.relative_error(value)} relative"
        for (work_id, name, what), value in worst.items()
    ]
    if not worst:
        lines.append("  no answer was checked")
    for process in saved.processes:
        lines += _of_lost(process, saved.plan.work_with(process.work_id))
    return lines


def _of_lost(process: ProcessResult, work: Work) -> list[str]:
    if process.finished:
        return []
    whose = f"{process.contestant} in block {process.block} on {work.label}"
    head = f"{whose}: {process.outcome.replace('_', ' ')}: {process.message} [{process.code}]"
    return [head, *(f"  | {line}" for line in process.details.splitlines())]  # which no line of ours begins with
