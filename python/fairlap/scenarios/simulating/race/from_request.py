"""What a race of simulations makes of a request."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.race.planning.works_from_request import modes_asked
from fairlap.race.scenario_side import OF_MODELS_ALONE, RaceSide
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Mode

MODE: Mode = "simulate"


class SimulatingFromRequest(RaceSide):
    title = f"--mode {MODE}"
    mode = MODE
    precision = "fp64"  # of the state in gymnasium
    refuses = (*OF_MODELS_ALONE, "to_score")
    does = "steps built-in environments"
    is_for_cpu = True

    def is_asked(self, request: RaceRequest) -> bool:
        return MODE in modes_asked(request)

    def require(self, request: RaceRequest) -> None:
        if {*modes_asked(request)} != {MODE}:
            raise InvalidRequest(f"{self.title} is raced alone; leave out the modes of models")
