"""What --dry-run shows on one screen: what would race, how it would run, how much of it, and for how long."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.quantity_text import count, rough_duration
from fairlap.request.fields.package_origin import image_in
from fairlap.secrets import without_secrets

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan
    from fairlap.request.names import ContestantName

_MOST_WORKS = 12


def screen_of(plan: Plan, budget_s: float | None = None, *, is_saved: bool = True) -> list[str]:
    """``budget_s`` is the one that was asked for, and ``is_saved`` whether the command can save a plan."""
    titles = list(dict.fromkeys(plan.title_of(work) for work in plan.works))
    more = len(titles) - _MOST_WORKS
    shown = [*titles[:_MOST_WORKS], *([f"and {more} more"] if more > 0 else [])]
    conditions = " and ".join(dict.fromkeys(block.conditions for block in plan.blocks))
    where = next((each.where for each in plan.scenarios if each.where), "")
    *fewer, most = plan.threads_of_works
    where = where or f"{plan.all_devices}, {''.join(f'{each} or ' for each in fewer)}{count(most, 'thread')}"
    width = max(len(name.text) for name in plan.contestants)
    return [
        *shown,
        f"{where}, {conditions}",
        *(f"  {name.text:{width}}  {_how_it_runs(name, plan)}" for name in plan.contestants),
        *(f"  left out: {each.name}: {each.why}" for each in plan.skipped),
        _amount(plan, budget_s),
        f"Seed {plan.seed}. `--json` prints the whole plan{', and `--save-plan FILE` writes it' if is_saved else ''}.",
    ]


def _how_it_runs(name: ContestantName, plan: Plan) -> str:
    from fairlap.frameworks.programs.command import require_programs
    from fairlap.frameworks.registry import framework_named
    from fairlap.launch.environments import environments, key_of
    from fairlap.launch.packages.making import making_of
    from fairlap.launch.runners import requirements_of, runs_here
    from fairlap.race.own_race import own_race_of

    if own_race_of(plan) is not None:
        return _how_server_runs(name)
    try:
        require_programs([name])
    except InvalidRequest as error:
        return f"will not run: {str(error).removeprefix(f'{name.text}: ')}"
    if not name.framework:
        return "runs as a program" if shutil.which(name.program) else f"will not run: {name.program} is no program here"
    framework = framework_named(name.framework)
    if why := framework.why_not_on(plan.device, name.variant):
        return f"will not run: {why}"
    if name.image:
        image, id_ = image_in(name.image)
        return f"runs in a container of {image}" + (f" (image {id_[:12]})" if id_ else "")
    if runs_here(name, framework):
        return "runs in this environment"
    needed, making = requirements_of(name, framework, plan.device, plan.precisions), making_of(name.options)
    key = key_of(needed, making)
    made = any(each.key == key and each.made for each in environments())
    listed = without_secrets(" ".join((*needed, *making.shown)))
    return f"runs in a separate environment: {listed}" + ("" if made else " (will be installed)")


def _how_server_runs(name: ContestantName) -> str:
    from fairlap.launch.environments import environments, key_of
    from fairlap.launch.packages.making import making_of
    from fairlap.scenarios.streams.started.server_start import is_started, start_of

    if not is_started(name):
        return "runs already" if name.url else "is called in this process"
    try:
        start, making = start_of(name), making_of(name.options)
        if not start.packages:
            return "is started in this environment"
        key = key_of(start.packages, making)
    except InvalidRequest as error:
        return f"will not run: {str(error).removeprefix(f'{name.text}: ')}"
    made = any(each.key == key and each.made for each in environments())
    return f"is started in a separate environment: {' '.join(start.packages)}" + (
        "" if made else " (will be installed)"
    )


def _amount(plan: Plan, budget_s: float | None) -> str:
    from fairlap.race.own_race import own_race_of
    from fairlap.race.planning.shared_processes import works_of_processes
    from fairlap.race.stopping import Ending

    one = "new process" if own_race_of(plan) is None else "turn"
    each = f"a block is {count(len(plan.contestants), one)}"
    earlier_s = _seconds_for_a_process(plan)
    if plan.until_decided:
        longest_s = Ending(plan, budget_s=budget_s).longest_s
        ends = "Until every comparison is decided" + (f", at most {longest_s:.0f} s" if longest_s else "")
    else:
        ends = f"{count(plan.process_count(), 'process')} in {count(len(plan.blocks), 'block')}"
        if earlier_s is not None:
            ends += f", about {rough_duration(earlier_s * plan.process_count())} by the last such race"
    most = max(works_of_processes(plan).values(), default=1)
    shared = f" A process takes up to {most} works, one after the other." if most > 1 else ""
    return f"{ends}; {each}, in random order.{shared}"


def _seconds_for_a_process(plan: Plan) -> float | None:
    """Of the newest finished race of the first work with as many contestants. None where none is stored."""
    from fairlap.store.errors import NoSuchRun, StoreError
    from fairlap.store.search import seconds_for_a_process
    from fairlap.store.store import open_store

    try:
        with open_store(reading=True) as store:
            return store.ask(seconds_for_a_process, plan.works[0].id, len(plan.contestants))
    except (NoSuchRun, StoreError):  # a dry run needs no store
        return None
