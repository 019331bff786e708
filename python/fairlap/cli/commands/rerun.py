"""``fairlap rerun RUN``: the same plan again, after a list of what changed, and whether its verdicts hold here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.options.output_options import race_options
from fairlap.cli.options.values import DURATION, RUN_OR_FILE
from fairlap.cli.output import print_note, print_result, progress_notes, set_statuses
from fairlap.cli.races.plan_trust import TRUST, require_allowed

if TYPE_CHECKING:
    from fairlap.cli.races.run_race import RunOutput
    from fairlap.race.planning.plan import Plan
    from fairlap.race.run import Run
    from fairlap.results.results import Results


@click.command(
    "rerun",
    cls=Command,
    sections=RACE_SECTIONS,
    essential="recheck baseline trust budget blocks output store quiet json",
    examples="""
fairlap rerun last
    Repeat the newest run, in the same order and with the same seeds.
fairlap rerun last --blocks 40
    Repeat it with more blocks.
fairlap rerun result.fairlap --recheck
    Race the bundle of another machine here, and say which of its verdicts hold.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@TRUST
@click.option("--recheck", is_flag=True, help="Say which verdicts of the run hold here, which flip, and why.")
@click.option("--budget", type=DURATION, help="Race for DURATION at most.  [default: that of the run]")
@click.option("--blocks", type=int, help="Run so many blocks: the first ones of the run, then more of its seed.")
@race_options
def command(
    run: str,
    trust: bool | None,
    recheck: bool,
    blocks: int | None,
    store: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run the plan of a run again, in the same order and with the same seeds, and show first what changed since.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file. What a plan from elsewhere reaches
    is shown, and it runs only with --trust.

    With --recheck, the answer is a table of the run's verdicts, then and here, and a plan of another machine moves to
    the cores of this one. Exit status: 0 when all hold, 1 when one flips, 3 when none flips but one is undecided.
    """
    import msgspec

    from fairlap.cli.races.run_race import checked_output, run_race
    from fairlap.frameworks.programs.command import require_programs
    from fairlap.race.planning.plan_drawing import with_blocks
    from fairlap.race.processes.chosen_rounds import with_rounds_of
    from fairlap.race.resume import require_same_sources, with_files_here, with_modules_now
    from fairlap.request.race_request import RaceOptions
    from fairlap.store.runs.run_sources import run_named

    then, run_id = run_named(run)
    then.plan = with_files_here(then.plan)
    require_allowed(then.plan, f"the plan of {run}", trust=bool(trust))
    moved = _moved_to_cores_here(then) if recheck else []
    _require_cores(then)
    notify = progress_notes(quiet=quiet).announce
    require_same_sources(then.plan, notify, given["pass_env"], budget_s=given["budget"])
    changes = [*moved, *_changes(then, notify)]
    for line in changes or [_no_change(then)]:
        print_note(line)
    options = RaceOptions(**{name: value for name, value in given.items() if value is not None})
    plan = with_modules_now(with_rounds_of(then.plan, then.processes))
    if blocks is not None:
        plan = with_blocks(plan, blocks)
    if options.budget is not None:
        plan = msgspec.structs.replace(plan, budget_s=float(options.budget))
    output = checked_output(plan, options, store=store, quiet=quiet, as_json=as_json)
    require_programs(plan.contestants)
    if recheck:
        raise SystemExit(_rechecked(then, run, plan, output, changes))
    status = run_race(plan, output)
    if store:
        print_note(f"compare it with `fairlap diff {run if Path(run).exists() else run_id} last`")
    raise SystemExit(status)


def _rechecked(then: Run, name: str, plan: Plan, output: RunOutput, differences: Sequence[str]) -> int:
    """Race the plan, print what became of the verdicts, and return the exit status."""
    from dataclasses import replace

    from fairlap.cli.races.run_race import run_race
    from fairlap.history.recheck import recheck, recheck_table
    from fairlap.render.encoders.text import aligned
    from fairlap.results.results import results_of

    set_statuses(loss=2)  # 1 means that a verdict flips
    before = results_of(then, name, baseline=output.options.baseline)
    statuses = []

    def answer(results: Results, run_id: str) -> None:
        found = recheck(before, results, differences, run_id)
        lines = [*aligned(recheck_table(found)), "", *(f"differs here: {each}" for each in found.differences)]
        print_result(found, "\n".join(lines).rstrip(), as_json=output.as_json, output=())
        statuses.append(found.exit_status)

    status = run_race(plan, replace(output, answer=answer))
    return status if status > 1 or not statuses else max(statuses) or status


def _moved_to_cores_here(then: Run) -> list[str]:
    """Move the plan to the cores of this process where it lacks some, and say so."""
    import os

    from fairlap.quantity_text import count
    from fairlap.race.planning.plan_drawing import on_cores

    wanted = {core for block in then.plan.blocks for core in block.cores}
    here = tuple(sorted(os.sched_getaffinity(0)))
    if wanted <= set(here):
        return []
    then.plan = on_cores(then.plan, here)
    return [f"cores {count(len(wanted), 'core')} of that machine -> {count(len(here), 'core')} of this one"]


def _require_cores(then: Run) -> None:
    """Refuse a plan that binds processes to cores that are not available here, by their numbers."""
    import os

    from fairlap.errors import InvalidRequest

    wanted = {core for block in then.plan.blocks for core in block.cores}
    if lacking := sorted(wanted - os.sched_getaffinity(0)):
        raise InvalidRequest(
            f"the run used cores that are not available here: {', '.join(map(str, lacking))};"
            " draw a new plan with `fairlap compare`"
        )


def _changes(then: Run, notify: Callable[[str], None]) -> list[str]:
    from fairlap.history.stale import versions_now, versions_then
    from fairlap.machine.differences import differences
    from fairlap.machine.facts import machine_facts
    from fairlap.race.planning.plan_modules import changed_code
    from fairlap.race.resume import changed_data
    from fairlap.version import __version__

    before = {**then.machine, "fairlap": then.fairlap, **versions_then(then)}
    now = {**machine_facts(), "fairlap": __version__, **versions_now(then)}
    data = changed_data(then.plan, then.processes, notify)
    found = [str(each) for each in (*differences(before, now), *data)]
    if code := changed_code(then.plan.modules):
        found.append(f"{code.text} [{code.code}]")
    return found


def _no_change(then: Run) -> str:
    from fairlap.history.history_text import listed

    further = [name for name, known in (("data", then.plan.data), ("code", then.plan.modules)) if known]
    return f"no known change of {listed(['machine', 'versions', *further])}"
