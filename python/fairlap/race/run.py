"""A run: a race as it is recorded."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairlap import __version__
from fairlap.errors import FairlapError
from fairlap.machine.roofs import Roofs, kept_roofs, roofs_of
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.plan import Plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.settings_search import SettingsSearch

RUN_FORMAT = 3


class Run(msgspec.Struct):
    """What happened. What it shows is computed from the processes; see ``fairlap.results``."""

    plan: Plan
    processes: list[ProcessResult]
    machine: dict[str, str]
    wall_s: dict[str, float]
    began_at: str = ""  # in UTC, ISO 8601; empty in runs saved before it was kept
    ended_early: str = ""  # why; empty when every block of the plan ran
    fairlap: str = str(__version__)
    format: int = RUN_FORMAT
    profiles: list[ProfileResult] = []  # of untimed processes; no row and no verdict rests on them
    compilations: list[CompilationResult] = []  # from processes that were not raced
    roofs: Roofs | None = None  # of the machine, with the threads of the plan; None where it was a race on a GPU

    @property
    def searches(self) -> tuple[SettingsSearch, ...]:
        """For the settings of contestants such as torch:best; part of the plan, so that it can be run again."""
        return self.plan.searches


def roofs_for(plan: Plan, notify: Callable[[str], None] = lambda _: None) -> Roofs | None:
    """Measured before on this machine, or now; None where they cannot be, or the work does not run on the CPU."""
    if plan.device != "cpu":
        return None
    try:
        if kept_roofs(plan.threads) is None:
            notify("measuring the roofs of this machine, which is done once and takes some seconds")
        return roofs_of(plan.threads)
    except FairlapError as error:
        notify(f"rows will not say what bounds them: {error}")
        return None
