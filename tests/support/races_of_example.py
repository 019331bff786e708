"""Short races of the example's contestants on one core, for tests that look at their processes."""

from __future__ import annotations

from typing import Any

from fairlap.race.plan import Measuring, Plan, draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult


def plan_of(contestants: str, *, blocks: int = 1, rounds: int = 4, **options: Any) -> Plan:
    """``options`` are those of ``draw_plan``."""
    return draw_plan(
        Contestants(contestants),
        (Work("mlp", 2),),
        blocks=blocks,
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
        measuring=Measuring(seconds=0.04, rounds=rounds),
        **options,
    )


def raced(plan: Plan) -> list[ProcessResult]:
    race = Race(plan)
    race.run()
    return race.processes
