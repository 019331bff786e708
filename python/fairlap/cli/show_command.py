"""``fairlap show RUN``: a run that was kept, as ``fairlap compare`` ended with it, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fairlap.ledger.finding import State
    from fairlap.race.laps import Lap
    from fairlap.race.saving import SavedRun


@click.command("show")
@click.argument("run")
@click.option("--errors", is_flag=True, help="Distances from the reference too, and what lost processes said last.")
@click.option("--json", "as_json", is_flag=True, help="The plan, the laps and the rows as JSON, without samples.")
def command(run: str, errors: bool, as_json: bool) -> None:
    """Show a run by its id, by the beginning of its id, or `last`: the answer, the machine, settings and warnings."""
    from fairlap.ledger.store import open_store

    with open_store(reading=True) as store:
        run_id = store.id_of(run)
        saved, state = store.load(run_id), store.state(run_id)
        if as_json:
            import msgspec

            from fairlap.ledger.carrying import carried

            click.echo(msgspec.json.encode(carried(run_id, state, saved, store.rows(run_id), [])))
            return
    from fairlap.ledger.resources_told import resources_told
    from fairlap.race.results import results_of
    from fairlap.race.telling import text_of

    parts = [_head(run_id, state, saved)]
    if saved.laps:
        told = text_of(saved.plan, results_of(saved.plan, saved.laps), resources_told)
        parts += [told, "\n".join(_beneath(saved))]
    if errors:
        parts.append("\n".join(_errors(saved)))
    click.echo("\n\n".join(parts))


def _head(run_id: str, state: State, saved: SavedRun) -> str:
    began = f", began {saved.began_at}" if saved.began_at else ""
    lines = [
        f"run {run_id}: {state}, {len(saved.laps)} of {saved.plan.processes()} processes{began},"
        f" fairlap {saved.fairlap}, seed {saved.plan.seed}"
    ]
    if saved.ended_early:
        lines.append(f"ended early: {saved.ended_early}")
    return "\n".join(lines)


def _beneath(saved: SavedRun) -> list[str]:
    lines = ["machine"]
    lines += [f"  {fact}: {value}" for fact, value in saved.machine.items()]
    for name in (contestant.text for contestant in saved.plan.contestants):
        laps = [lap for lap in saved.laps if lap.contestant == name]
        versions = ", ".join(dict.fromkeys(lap.version for lap in laps if lap.version)) or "version unknown"
        in_force = next((lap.in_force for lap in laps if lap.in_force), {})
        settings = ", ".join(f"{setting} {value}" for setting, value in in_force.items()) or "settings unknown"
        lines.append(f"{name} ({versions}): {settings}")
        lines += [f"  ! {text}" for text in _warnings(laps)]
    return lines


def _warnings(laps: Sequence[Lap]) -> list[str]:
    """Those that differ only in their figures are one, told as it first came."""
    from fairlap.ledger.warnings_alike import kinds_of_warnings

    told = []
    for kind in kinds_of_warnings((lap.contestant, lap.warnings) for lap in laps):
        processes = kind.said_by.total()
        told.append(f"{kind.first} ({'in one process' if processes == 1 else f'the like in {processes} processes'})")
    return told


def _errors(saved: SavedRun) -> list[str]:
    """The worst of every array for every contestant, then the words of processes that were lost."""
    lines = ["distance from the reference, the worst of all processes"]
    worst: dict[tuple[str, str, str], float] = {}
    for lap in saved.laps:
        for error in lap.errors:
            key = (lap.work, lap.contestant, error.what)
            worst[key] = max(worst.get(key, 0.0), math.inf if math.isnan(error.relative) else error.relative)
    lines += [f"  {work} · {name} · {what}: {value:.1e} relative" for (work, name, what), value in worst.items()]
    if not worst:
        lines.append("  no answer was checked")
    for lap in saved.laps:
        lines += _of_lost(lap)
    return lines


def _of_lost(lap: Lap) -> list[str]:
    if lap.finished:
        return []
    head = f"{lap.contestant} in block {lap.block} on {lap.work}: {lap.outcome.replace('_', ' ')}: {lap.message}"
    return [head, *(f"  {line}" for line in lap.details.splitlines())]
