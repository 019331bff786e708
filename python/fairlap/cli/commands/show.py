"""``fairlap show RUN``: a run that was kept, as ``fairlap compare`` ended with it, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fairlap import quantity_text

if TYPE_CHECKING:
    from fairlap.race.process_result import ProcessResult
    from fairlap.race.run import Run
    from fairlap.store.search import State


@click.command("show")
@click.argument("run")
@click.option("--errors", is_flag=True, help="Distances from the reference too, and what lost processes said last.")
@click.option("--json", "as_json", is_flag=True, help="The plan, the processes and the rows as JSON, without samples.")
def command(run: str, errors: bool, as_json: bool) -> None:
    """Show a run by its id, by the beginning of its id, or `last`: the answer, the machine, settings and warnings."""
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        run_id = store.id_of(run)
        saved, state = store.load(run_id), store.state(run_id)
        if as_json:
            from fairlap.results.results import results_of
            from fairlap.store.run_file import encode_document, run_document

            click.echo(encode_document(run_document(saved, results_of(saved, run_id), state=state)))
            return
    from fairlap.render.terminal import text_of
    from fairlap.results.results import results_of

    parts = [_head(run_id, state, saved)]
    if saved.processes:
        told = text_of(results_of(saved, run_id))
        parts += [told, "\n".join(_beneath(saved))]
    if errors:
        parts.append("\n".join(_errors(saved)))
    click.echo("\n\n".join(parts))


def _head(run_id: str, state: State, saved: Run) -> str:
    began = f", began {saved.began_at}" if saved.began_at else ""
    lines = [
        f"run {run_id}: {state}, {len(saved.processes)} of {saved.plan.process_count()} processes{began},"
        f" fairlap {saved.fairlap}, seed {saved.plan.seed}"
    ]
    if saved.ended_early:
        lines.append(f"ended early: {saved.ended_early}")
    return "\n".join(lines)


def _beneath(saved: Run) -> list[str]:
    lines = ["machine"]
    lines += [f"  {fact}: {value}" for fact, value in saved.machine.items()]
    for name in (contestant.text for contestant in saved.plan.contestants):
        processes = [process for process in saved.processes if process.contestant == name]
        versions = (
            ", ".join(dict.fromkeys(process.version for process in processes if process.version)) or "version unknown"
        )
        in_force = next((process.in_force for process in processes if process.in_force), {})
        settings = ", ".join(f"{setting} {value}" for setting, value in in_force.items()) or "settings unknown"
        lines.append(f"{name} ({versions}): {settings}")
        lines += [f"  ! {text}" for text in _warnings(processes)]
    return lines


def _warnings(processes: Sequence[ProcessResult]) -> list[str]:
    """Those that differ only in their figures are one, told as it first came."""
    from fairlap.render.repeated_warnings import warning_kinds

    told = []
    for kind in warning_kinds((process.contestant, process.warnings) for process in processes):
        count = kind.by_contestant.total()
        told.append(f"{kind.first.text} ({'in one process' if count == 1 else f'the like in {count} processes'})")
    return told


def _errors(saved: Run) -> list[str]:
    """The worst of every array for every contestant, then the words of processes that were lost."""
    lines = ["distance from the reference, the worst of all processes"]
    worst: dict[tuple[str, str, str], float] = {}
    for process in saved.processes:
        for error in process.errors:
            key = (process.work, process.contestant, error.what)
            worst[key] = max(worst.get(key, 0.0), error.distance)
    lines += [
        f"  {work} · {name} · {what}: {quantity_text.relative_error(value)} relative"
        for (work, name, what), value in worst.items()
    ]
    if not worst:
        lines.append("  no answer was checked")
    for process in saved.processes:
        lines += _of_lost(process)
    return lines


def _of_lost(process: ProcessResult) -> list[str]:
    if process.finished:
        return []
    outcome = process.outcome.replace("_", " ")
    head = f"{process.contestant} in block {process.block} on {process.work}: {outcome}: {process.message}"
    return [head, *(f"  {line}" for line in process.details.splitlines())]
