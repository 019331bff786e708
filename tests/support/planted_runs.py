"""Races of two releases of one framework, of which the second runs an operator twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fairlap.race.plan import Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Work

CONTESTANT = "planted"
_PLANTED = "FAIRLAP_PLANTED"  # what the adapter in planted/ reads
_MODULES = Path(__file__).parent / "planted"


def install_planted(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """As a package would: by an entry point."""
    info = folder / "planted-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlap.frameworks]\nplanted = planted_operator:PlantedTorch\n")
    paths = [str(folder), str(_MODULES)]
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH", "")])))
    for path in paths:
        patch.syspath_prepend(path)


def release(patch: pytest.MonkeyPatch, work: Work, seed: int, planted: str = "") -> Run:
    """Race the release, the second one where a module is ``planted``."""
    patch.setenv(_PLANTED, planted)
    plan = draw_plan(
        Contestants(CONTESTANT),
        (work,),
        blocks=2,
        conditions="controlled",
        threads=1,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=seed,
        measuring=Measuring(seconds=0.2),
        profile_processes=3,
    )
    race = Race(plan)
    race.run()
    return Run(plan, race.processes, {}, race.shares(), profiles=race.findings.profiles)
