"""What a race of agents makes of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.models.modes import AGENTS
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.works_from_request import modes_asked, precisions_asked
from fairlap.race.scenario_side import OF_MODELS_ALONE, Offered, RaceSide
from fairlap.request.race_request import MOST_EPOCHS_BY_DEFAULT, RaceRequest
from fairlap.scenarios.learning.race.learning_data import E_TO_SCORE

_MOST_EPOCHS = 10**5


class AgentsFromRequest(RaceSide):
    title = f"--mode {' or '.join(AGENTS)}"
    mode = AGENTS[0]
    batch = 8  # environments
    refuses = (*OF_MODELS_ALONE, "fraction", "count_evaluation")
    does = "learns in its environment"
    is_for_cpu = True

    def is_asked(self, request: RaceRequest) -> bool:
        return not {*modes_asked(request)}.isdisjoint(AGENTS)

    def require(self, request: RaceRequest) -> None:
        if not {*modes_asked(request)} <= {*AGENTS}:
            raise InvalidRequest(f"{self.title} is raced alone; leave out other modes")
        if (other := {*precisions_asked(request)} - {self.precision}) and (given := ", ".join(sorted(other))):
            raise InvalidRequest(f"{self.title} is in fp32, not in {given}; leave out --precision", code="E_PRECISION")
        if request.epochs is not None and request.to_score is None:
            raise InvalidRequest("--epochs is for --to-score", code=E_TO_SCORE)

    def plan_fields(self, request: RaceRequest, offered: Offered) -> dict[str, Any]:
        if request.to_score is None:
            return {}
        epochs = MOST_EPOCHS_BY_DEFAULT if request.epochs is None else request.epochs
        most = whole_number("epochs", epochs, least=1, most=_MOST_EPOCHS)
        return {"to_score": float(request.to_score), "most_epochs": most}

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        if plan.to_score is not None and (not 0 < plan.to_score < 1 or plan.most_epochs < 1):
            raise InvalidRequest(
                f"a score is between 0 and 1, in at least one epoch (got {plan.to_score:g} in {plan.most_epochs})",
                code=E_TO_SCORE,
            )
