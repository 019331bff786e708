"""From the command line to a race: drawn from a request, from a saved plan, or resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import FILE, RUN
from fairlap.cli.output import print_line, progress_notes
from fairlap.cli.races.plan_trust import require_allowed
from fairlap.errors import InvalidRequest
from fairlap.machine.files.open_files import require_open_files

if TYPE_CHECKING:
    from fairlap.cli.races.recorder import StoredRun
    from fairlap.cli.races.run_race import RunOutput
    from fairlap.race.planning.plan import Plan
    from fairlap.request.race_request import RaceOptions, RaceRequest


_SAME = ("cpu model", "cores", "architecture")  # of a machine that a run may be resumed on
_PLAN_OPTIONS = (
    click.option("--dry-run", is_flag=True, help="Show what would race, for how long, and run nothing."),
    click.option("--save-plan", type=FILE, help="Write the plan to a file."),
    click.option("--plan", "plan_file", type=FILE, help="Run a saved plan."),
    click.option(
        "--resume", type=RUN, metavar="RUN", help="Resume an interrupted run: `last`, an id or its beginning."
    ),
)


plan_options = grouped(_PLAN_OPTIONS)


@dataclass(frozen=True)
class PlanOptions:
    dry_run: bool
    save_plan: Path | None
    plan_file: Path | None
    resume: str | None


def race_as_asked(
    models: tuple[str, ...],
    given: dict[str, Any],
    requested: Callable[[tuple[str, ...], dict[str, Any]], RaceRequest],
    options: PlanOptions,
    *,
    store: bool,
    quiet: bool,
    as_json: bool,
    require: Callable[[Plan], None] = lambda _plan: None,
) -> None:
    """Race what the options ask for, and end the command.

    ``requested`` is called where the plan is neither saved nor resumed; ``require`` raises for a plan that the command
    does not run.
    """
    require_open_files()
    given = {name: value for name, value in given.items() if value not in (None, ())}
    [first, *others] = models or ("",)
    if first.lower().endswith(".json") and not others and "contestants" not in given and options.plan_file is None:
        models, options = (), replace(options, plan_file=Path(first))
    if options.resume is not None and options.plan_file is not None:
        raise InvalidRequest("a resumed run has its own plan; leave --plan out")

    def planned(notify: Callable[[str], None]) -> Planned:
        found = _planned(models, given, requested, options, notify, store=store, quiet=quiet, as_json=as_json)
        require(found.plan)
        return found

    race_planned(planned, options, quiet=quiet, as_json=as_json)


def race_planned(
    planned: Callable[[Callable[[str], None]], Planned], options: PlanOptions, *, quiet: bool, as_json: bool
) -> None:
    """Race a plan that is drawn or read first, or only show it, and end the command."""
    from fairlap.cli.races.run_race import run_race
    from fairlap.frameworks.programs.command import require_programs
    from fairlap.race.planning.plan_file import save_plan

    with progress_notes(quiet=quiet) as notes:
        found = planned(notes.announce)
        if options.save_plan is not None:
            save_plan(found.plan, options.save_plan)
        warn_of_too_few_blocks(found.plan, notes.announce)
        if options.dry_run:
            _say_what_is_not_checked(found.plan, notes.announce)
            print_plan(found.plan, found.output.options.budget, as_json=as_json)
            return
        require_programs(found.plan.contestants)
    raise SystemExit(run_race(found.plan, found.output, found.resumed))


@dataclass(frozen=True)
class Planned:
    plan: Plan
    output: RunOutput
    resumed: StoredRun | None = None


def _planned(
    models: tuple[str, ...],
    given: dict[str, Any],
    requested: Callable[[tuple[str, ...], dict[str, Any]], RaceRequest],
    options: PlanOptions,
    notify: Callable[[str], None],
    *,
    store: bool,
    quiet: bool,
    as_json: bool,
) -> Planned:
    """Drawn, read from a file, or that of the run to resume."""
    from fairlap.cli.races.run_race import checked_output
    from fairlap.race.planning.plan_file import load_plan
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.race.planning.plan_reach import allow
    from fairlap.race.planning.shared_processes import require_several_works, require_shared
    from fairlap.race.resume import require_same_sources, with_files_here, with_modules_now
    from fairlap.results.decision.required_measured import require_measured
    from fairlap.store.runs.run_sources import require_contestant

    if options.resume is None and options.plan_file is None:
        request = requested(models, given)
        output = checked_output(request, request, store=store, quiet=quiet, as_json=as_json)
        require_several_works(request)
        plan = plan_of(request, notify)
        require_measured(plan)
        allow(plan)
        require_shared(plan)
        require_contestant(plan, request.baseline)
        return Planned(plan, output)
    trust = bool(given.pop("trust", False))
    of_race = _options_of_saved_plan(models, given)
    resumed = None
    if options.resume is not None:
        if not store:
            raise InvalidRequest("a resumed run is stored; leave --no-store out", code="E_RESUME")
        passed = given.get("pass_env", ())
        resumed = resumable(options.resume, notify, passed, trust=trust, budget_s=of_race.budget)
        of_race = _with_budget_left(of_race, resumed)
        plan = resumed.run.plan
    else:
        assert options.plan_file is not None
        plan = with_files_here(load_plan(options.plan_file))
        require_allowed(plan, str(options.plan_file), trust=trust)
        require_same_sources(plan, notify, given.get("pass_env", ()), budget_s=of_race.budget)
        if of_race.budget is not None:
            plan = msgspec.structs.replace(plan, budget_s=float(of_race.budget))
        plan = with_modules_now(plan)
    return Planned(plan, checked_output(plan, of_race, store=store, quiet=quiet, as_json=as_json), resumed)


def _options_of_saved_plan(models: tuple[str, ...], given: dict[str, Any]) -> RaceOptions:
    from fairlap.request.race_request import RaceOptions

    excess = [name for name in given if name not in (*RaceOptions.__struct_fields__, "scenario_settings")]
    excess += given.get("scenario_settings", {})
    if models or excess:
        named = f"--{excess[0].removesuffix('_bytes').replace('_', '-')}" if excess else "MODEL"
        named = {"--contestants": "--on"}.get(named, named)
        instead = "race RUN again with `fairlap rerun RUN --blocks N`" if named == "--blocks" else "draw a new plan"
        raise InvalidRequest(f"a saved plan decides this already; leave {named} out, or {instead}")
    return RaceOptions(**given)


def _with_budget_left(options: RaceOptions, resumed: StoredRun) -> RaceOptions:
    """Refuse to continue a decided run without a new budget; an interrupted one goes on with the rest of its own."""
    from fairlap.cli.races.run_race import LEAST_BUDGET_S
    from fairlap.race.resume import all_blocks_ran

    run, run_id = resumed.run, resumed.run_id
    again = f"`fairlap rerun {run_id}` races it again"
    if resumed.had_ended and all_blocks_ran(run.plan, run.processes):
        raise InvalidRequest(
            f"{run_id} has run all its blocks, and a verdict that is known cannot get more; {again}, with --blocks N "
            "as many as you like",
            code="E_RESUME",
        )
    if options.budget is not None:
        return options
    if resumed.had_ended:
        raise InvalidRequest(
            f"{run_id} has ended: {resumed.had_ended}; {again}, and --budget 60s continues it", code="E_RESUME"
        )
    if run.plan.budget_s is None:
        return options
    left_s = max(run.plan.budget_s - run.wall_s.get("whole", 0.0), LEAST_BUDGET_S)
    return msgspec.structs.replace(options, budget=left_s)


def resumable(
    name: str, notify: Callable[[str], None], passed: tuple[str, ...], *, trust: bool, budget_s: float | None
) -> StoredRun:
    """Load a stored run with its whole blocks, since blocks of two machines or two sets of data do not make one run."""
    from fairlap.cli.races.recorder import StoredRun
    from fairlap.machine.facts import machine_facts
    from fairlap.race.planning.plan_modules import changed_code
    from fairlap.race.resume import changed_data, require_same_sources, whole_blocks, why_over, with_files_here
    from fairlap.store.shared.sender import open_with
    from fairlap.store.tables import require_no_sweep

    if Path(name).exists() or Path(name).suffix:
        raise InvalidRequest(
            f"{name} is a file, and --resume takes the id of a stored run; store it with `fairlap runs import {name}`",
            code="E_RESUME",
        )
    with open_with(name) as store:
        run_id = store.id_of(name)
        store.ask(require_no_sweep, run_id)
        store.require_ended(run_id)
        run, state = store.load(run_id), store.state(run_id)
    here = machine_facts()
    differ = [f"{fact} was {run.machine.get(fact)}, is {here.get(fact)}" for fact in _SAME
              if run.machine.get(fact) != here.get(fact)]  # fmt: skip
    if differ:
        raise InvalidRequest(f"{run_id} cannot be resumed on another machine: {'; '.join(differ)}", code="E_RESUME")
    run.plan = with_files_here(run.plan)
    require_allowed(run.plan, f"the plan of {run_id}", trust=trust)
    require_same_sources(run.plan, notify, passed, budget_s=budget_s)
    run.processes = whole_blocks(run.plan, run.processes)
    if code := changed_code(run.plan.modules):
        raise InvalidRequest(
            f"{run_id} cannot be resumed: {code.text}; `fairlap rerun {run_id}` races it", code="E_RESUME"
        )
    for data in changed_data(run.plan, run.processes, notify):
        raise InvalidRequest(
            f"{run_id} cannot be resumed on other {data} (hashes); restore the data, or start a new run",
            code="E_RESUME",
        )
    return StoredRun(run, run_id, why_over(run) if state == "finished" else "")


def warn_of_too_few_blocks(plan: Plan, notify: Callable[[str], None], of: str = "") -> None:
    """Before the blocks take their time. ``of`` names the plan where there are several."""
    from fairlap.race.stopping import too_few_blocks

    if warning := too_few_blocks(plan):
        notify(f"{of}{warning}; give more --blocks, or leave them out [{warning.code}]")


def _say_what_is_not_checked(plan: Plan, notify: Callable[[str], None]) -> None:
    if versions := [name.plain_text for name in plan.contestants if name.version]:
        asked = ", ".join(versions)
        notify(f"not checked, since a dry run asks no package index: whether {asked} can be installed")


def print_plan(plan: Plan, budget_s: float | None, *, as_json: bool, is_saved: bool = True) -> None:
    if as_json:
        from fairlap.cli.output import print_json

        print_json(plan)
        return
    from fairlap.cli.races.dry_run import screen_of

    for line in screen_of(plan, budget_s, is_saved=is_saved):
        print_line(line)
