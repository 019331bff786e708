"""A run: a race as it is recorded."""

from __future__ import annotations

import msgspec

from fairlap import __version__
from fairlap.race.plan import Plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.profile_result import ProfileResult

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
