"""``fairlap rerun RUN``: the same plan again, after a list of what changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.options.output_options import race_options
from fairlap.cli.options.values import DURATION, RUN_OR_FILE
from fairlap.cli.output import print_note, progress_notes
from fairlap.cli.races.plan_trust import TRUST, require_allowed

if TYPE_CHECKING:
    from fairlap.race.run import Run


@click.command(
    "rerun",
    cls=Command,
    sections=RACE_SECTIONS,
    essential="baseline trust budget blocks output store quiet json",
    examples="""
fairlap rerun last
    Repeat the newest run, in the same order and with the same seeds.
fairlap rerun last --blocks 40
    Repeat it with more blocks.
""",
)
@click.argument("run", type=RUN_OR_FILE, metavar="RUN|FILE")
@TRUST
@click.option("--budget", type=DURATION, help="Race for DURATION at most.  [default: that of the run]")
@click.option("--blocks", type=int, help="Run so many blocks: the first ones of the run, then more of its seed.")
@race_options
def command(
    run: str, trust: bool | None, blocks: int | None, store: bool, quiet: bool, as_json: bool, **given: Any
) -> None:
    """Run the plan of a run again, in the same order and with the same seeds, and show first what changed since.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file. What a plan from elsewhere reaches
    is shown, and it runs only with --trust.
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
    _require_cores(then)
    notify = progress_notes(quiet=quiet).announce
    require_same_sources(then.plan, notify, given["pass_env"])
    for line in _differences(then, notify):
        print_note(line)
    options = RaceOptions(**{name: value for name, value in given.items() if value is not None})
    plan = with_modules_now(with_rounds_of(then.plan, then.processes))
    if blocks is not None:
        plan = with_blocks(plan, blocks)
    if options.budget is not None:
        plan = msgspec.structs.replace(plan, budget_s=float(options.budget))
    output = checked_output(plan, options, store=store, quiet=quiet, as_json=as_json)
    require_programs(plan.contestants)
    status = run_race(plan, output)
    if store:
        print_note(f"compare it with `fairlap diff {run if Path(run).exists() else run_id} last`")
    raise SystemExit(status)


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


def _differences(then: Run, notify: Callable[[str], None]) -> list[str]:
    from fairlap import __version__
    from fairlap.history.history_text import listed
    from fairlap.history.stale import versions_now, versions_then
    from fairlap.machine.differences import differences
    from fairlap.machine.facts import machine_facts
    from fairlap.race.planning.plan_modules import changed_code
    from fairlap.race.resume import changed_data

    before = {**then.machine, "fairlap": then.fairlap, **versions_then(then)}
    now = {**machine_facts(), "fairlap": str(__version__), **versions_now(then)}
    data = changed_data(then.plan, then.processes, notify)
    found = [str(each) for each in (*differences(before, now), *data)]
    if code := changed_code(then.plan.modules):
        found.append(f"{code.text} [{code.code}]")
    further = [name for name, known in (("data", then.plan.data), ("code", then.plan.modules)) if known]
    compared = listed(["machine", "versions", *further])
    return found or [f"no known change of {compared}"]
