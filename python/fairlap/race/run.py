"""A run: a race as it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fairlap.errors import FairlapError
from fairlap.machine.hardware.device_roofs import kept_roofs_of_device, roofs_of_device
from fairlap.machine.hardware.roofs import Roofs, kept_roofs, roofs_of, usable_cores
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.around_blocks.settings_search import SettingsSearch
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import checked_plan
from fairlap.scenarios.process_result import ProcessResult, checked
from fairlap.version import __version__

RUN_FORMAT = 4
_CONTINUED = "continued after block "


class Run(msgspec.Struct):
    """What happened. What it shows is computed from the processes; see ``fairlap.results``."""

    plan: Plan
    processes: list[ProcessResult]
    machine: dict[str, str]
    wall_s: dict[str, float]
    began_at: str = ""  # in UTC, ISO 8601; empty in runs saved before it was kept
    ended_early: str = ""  # why; empty when every block of the plan ran
    fairlap: str = __version__
    format: int = RUN_FORMAT
    profiles: list[ProfileResult] = []  # of untimed processes; no row and no verdict rests on them
    compilations: list[CompilationResult] = []  # from processes that were not raced
    roofs: Roofs | None = None  # of what it ran on: the machine with the threads of the plan's works, or a GPU
    note: str = ""  # this and the tags are what people wrote about it afterwards
    tags: tuple[str, ...] = ()

    @property
    def searches(self) -> tuple[SettingsSearch, ...]:
        """For the settings of contestants such as torch:best; part of the plan, so that it can be run again."""
        return self.plan.searches

    @property
    def continued_after(self) -> tuple[int, ...]:
        """After how many blocks the run had ended, each time that it was continued after its verdict was known."""
        numbers = self.ended_early.partition(_CONTINUED)[2]
        return tuple(int(part) for part in numbers.split(", ") if part.isdecimal())


def with_continuation(reason: str, after: Sequence[int]) -> str:
    """Add to why a run ended after which numbers of blocks it had ended before, and was continued."""
    numbers = ", ".join(map(str, after))
    return "; ".join(part for part in (reason, f"{_CONTINUED}{numbers}" if numbers else "") if part)


def checked_run(run: Run) -> Run:
    """Refuse one from a file whose parts do not fit each other; no race writes such. Raises msgspec.ValidationError."""
    works = {work.id for work in checked_plan(run.plan).works}
    names = {name.text for name in run.plan.contestants}
    for each in checked(run.processes):
        whose = f"the process of {each.contestant!r:.200} in block {each.block}"
        if each.contestant not in names:
            raise msgspec.ValidationError(f"{whose} is of no contestant of the plan")
        if each.work_id not in works:
            raise msgspec.ValidationError(f"{whose} did the work {each.work_id!r:.200}, which the plan does not have")
    return run


def roofs_for(
    plan: Plan,
    announce: Callable[[str], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> Roofs | None:
    """Of what the plan runs on, measured before or now; None where they cannot be, or it does not run here."""
    if any(each.own_race for each in plan.scenarios):
        return None
    try:
        if plan.device != "cpu":
            if kept_roofs_of_device(plan.device) is None:
                announce(f"measuring the roofs of {plan.device}, which is done once and takes some seconds")
            return roofs_of_device(plan.device)
        *fewer, most = [threads for threads in plan.threads_of_works if threads <= len(usable_cores())] or [
            plan.threads
        ]
        if any(kept_roofs(threads) is None for threads in (*fewer, most)):
            announce("measuring the roofs of this machine, which is done once and takes some seconds")
        return msgspec.structs.replace(roofs_of(most), with_fewer_threads=tuple(map(roofs_of, fewer)))
    except FairlapError as error:
        report(f"rows will not say what bounds them: {error}")
        return None
