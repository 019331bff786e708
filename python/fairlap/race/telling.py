"""What a race says in the terminal: progress on standard error, the answer on standard output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from fairlap import verdict
from fairlap.engine import digits
from fairlap.race.ending import Ending
from fairlap.race.plan import Plan
from fairlap.race.results import FAULTS, Contender, Heat, Results, results_of
from fairlap.race.saving import SavedRun
from fairlap.verdict.mode_causes import REMEDIES

_NS_OF_A_FAULT = 500.0  # about what the kernel takes to hand a page out; clearing it comes on top
_SHARE_WORTH_TELLING = 0.02


def run_and_tell(
    plan: Plan,
    json_file: Path | None,
    ending: Ending | None = None,
    after: Callable[[SavedRun, Results], str] = lambda _run, _results: "",
    *,
    resumed: SavedRun | None = None,
    quiet: bool = False,
) -> int:
    """Run the plan; print what came of it also when it was interrupted. The exit status: 0 when somebody finished.

    ``after`` writes further files and says which could not be written.
    """
    from fairlap.machine.facts import machine_facts
    from fairlap.race.progress import progress_for
    from fairlap.race.race import Race
    from fairlap.race.saving import save_run

    progress = progress_for(plan, quiet=quiet)
    race = Race(plan, progress, ending, resumed=resumed.laps if resumed else ())
    if resumed:
        progress.say(f"{len(race.laps)} of {plan.processes()} processes are kept from before")
    run = SavedRun(plan, race.laps, machine_facts(), {}, datetime.now(UTC).isoformat(timespec="seconds"))
    before_s: Mapping[str, float] = {}
    if resumed:
        run.began_at, before_s = resumed.began_at, resumed.wall_s

    def save(results: Results | None = None) -> str:
        """Why the file could not be written; a full disk is no reason to lose the race."""
        run.wall_s = {name: seconds + before_s.get(name, 0.0) for name, seconds in race.shares().items()}
        run.ended_early = race.ended_early
        try:
            if json_file is not None:
                save_run(json_file, run, results)
        except OSError as error:
            return f"{json_file} could not be written: {error.strerror}"
        return ""

    try:
        with progress:
            race.run(after_block=save)
    except KeyboardInterrupt:
        click.echo(f"fairlap: interrupted; {len(race.laps)} of {plan.processes()} processes are kept", err=True)
    if race.ended_early:
        progress.say(f"ended after {len(race.laps)} of {plan.processes()} processes: {race.ended_early}")
    results = results_of(plan, race.laps)
    not_saved, not_written = save(results), after(run, results)
    click.echo(text_of(plan, results))
    if not_saved:
        click.echo(f"fairlap: {not_saved}; what it would hold is lost but for the table above", err=True)
    elif race.interrupted and json_file is not None:
        click.echo(f"fairlap: go on with: fairlap compare --resume {json_file}", err=True)
    if not_written:
        click.echo(f"fairlap: {not_written}", err=True)
    if race.interrupted:
        return 130
    if not_saved or not_written:
        return 1
    return 0 if any(lap.finished for lap in race.laps) else 1


def text_of(plan: Plan, results: Results) -> str:
    """The whole answer: for each work what matters most first."""
    parts = []
    for work in plan.works:
        lines = _order_line(results, work.label)
        heats = [heat for heat in results.heats if heat.work == work.label]
        for heat in heats:
            lines += _heat_lines(plan, heat)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _order_line(results: Results, work: str) -> list[str]:
    differs = results.order_differs(work)
    if differs is None:
        return []
    found, controlled = (" < ".join(order) for order in differs)
    return [
        "The order depends on the conditions; the causes stand below.",
        f"  as found:   {found}",
        f"  controlled: {controlled}",
    ]


def _heat_lines(plan: Plan, heat: Heat) -> list[str]:
    blocks = digits.counted(len(heat.blocks.kept), "complete block")
    threads = digits.counted(plan.threads, "thread")
    lines = [f"{heat.work} · {plan.device} ({threads}) · {heat.conditions}, {blocks}"]
    best = next((row.median_ns for row in heat.rows if row.ranked), None)
    width = max(len(row.contestant) for row in heat.rows)
    places = {place.contestant: place.label for place in heat.standing.places} if heat.standing else {}
    for row in heat.rows:
        lines.append(f"  {places.get(row.contestant, '-'):>3} {row.contestant:<{width}}  {_row_text(row, best)}")
        lines += [f"      {' ' * width} {told}" for told in _remarks(row)]
    lines += [f"  {sentence}" for sentence in _sentences(heat)]
    if heat.blocks.told:
        lines.append(f"  {heat.blocks.told}")
    if heat.why_no_verdict:
        lines.append(f"  no verdict: {heat.why_no_verdict}")
    return lines


def _sentences(heat: Heat) -> list[str]:
    """The pairs a reader asks for: the first against each of the others. All pairs are in the JSON."""
    if heat.standing is None:
        return []
    first = heat.standing.places[0].contestant
    return [verdict.sentence(each) for each in heat.comparisons if first in (each.a, each.b)]


def _row_text(row: Contender, best_ns: float | None) -> str:
    if row.figure is None:
        return row.trouble
    if row.figure.value is None:
        listed = ", ".join(f"{digits.duration(m.value)} in {m.share:.0%} of processes" for m in row.figure.modes.modes)
        text = f"two modes: {listed}" if len(row.figure.modes.modes) == 2 else f"modes: {listed}"
    else:
        text = _with_interval(row.figure)
    times = f"  {row.median_ns / best_ns:.2f}x" if best_ns else ""
    error = row.worst_relative_error
    return f"{text}{times}" + (f"  error {error:.1e}" if error is not None else "")


def _with_interval(figure: verdict.ContestantFigure) -> str:
    value, low, high = figure.value or 0.0, figure.low or 0.0, figure.high or math.inf
    if low == 0.0 or math.isinf(high):  # fewer than six processes carry no interval
        return digits.duration(value)
    return digits.interval(value, low, high)


def _remarks(row: Contender) -> list[str]:
    if not row.finished:
        return []
    remarks = []
    if row.figure is not None and row.trouble:
        remarks.append(f"! {row.trouble}")
    faults = row.median_of(FAULTS)
    if faults is not None and faults * _NS_OF_A_FAULT > _SHARE_WORTH_TELLING * row.median_ns:
        remarks.append(f"! {faults:,.0f} page faults per call; {REMEDIES['page faults per call']}")
    for cause in row.causes:
        remedy = f"; {cause.remedy}" if cause.remedy else ""
        remarks.append(f"! its modes go with {cause.covariate} ({', '.join(cause.typical)}){remedy}")
    return remarks
