"""Races that are small: of one block on one core, as found, unless a test says otherwise."""

from __future__ import annotations

from typing import Any

from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult


def small_plan(contestants: str, *works: Work, **options: Any) -> Plan:
    """``options`` are those of ``draw_plan``."""
    usual = {"blocks": 1, "conditions": "as-found", "threads": 1, "available_cores": (0,), "seed": 1}
    return draw_plan(Contestants(contestants), works, **{**usual, **options})


def run_race(plan: Plan, *report: Any, **options: Any) -> Race:
    """Run a race to its end; ``report`` and ``options`` are those of ``Race``."""
    race = Race(plan, *report, **options)
    race.run()
    return race


def plan_of(contestants: str, *, blocks: int = 1, rounds: int = 4, **options: Any) -> Plan:
    """Of the example's contestants."""
    return small_plan(
        contestants, Work("mlp", 2), blocks=blocks, measuring=Measuring(seconds=0.04, rounds=rounds), **options
    )


def raced(plan: Plan) -> list[ProcessResult]:
    return run_race(plan).processes
