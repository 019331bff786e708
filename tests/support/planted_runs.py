"""Races of two releases of one framework, of which the second runs an operator twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fairlap.race.planning.plan import Measuring
from fairlap.race.run import Run
from fairlap.request.work import Work
from installed_package import install_frameworks
from small_races import run_race, small_plan

CONTESTANT = "planted"
_PLANTED = "FAIRLAP_PLANTED"  # what the adapter in planted/ reads
_MODULES = Path(__file__).parent / "planted"


def install_planted(folder: Path, patch: pytest.MonkeyPatch) -> None:
    install_frameworks(folder, patch, {"planted": "planted_operator:PlantedTorch"}, _MODULES)


def release(patch: pytest.MonkeyPatch, work: Work, seed: int, planted: str = "") -> Run:
    """Race the release, the second one where a module is ``planted``."""
    patch.setenv(_PLANTED, planted)
    plan = small_plan(
        CONTESTANT,
        work,
        blocks=2,
        conditions="controlled",
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=seed,
        measuring=Measuring(seconds=0.2),
        profile_processes=3,
    )
    race = run_race(plan)
    return Run(plan, race.processes, {}, race.shares(), profiles=race.findings.profiles)
