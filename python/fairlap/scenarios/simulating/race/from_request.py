"""What a race of simulations makes of a request."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.race.planning.works_from_request import modes_asked
from fairlap.race.scenario_side import RaceSide
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Mode

MODE: Mode = "simulate"
_OF_MODELS = (
    *("load", "data", "generate", "shapes", "shapes_from", "dims", "inputs", "items", "before", "after", "ranges"),
    *("reference", "metric", "labels", "loss", "optimizer", "schedule", "start_from", "to_score", "train_on"),
    *("recompile", "processes", "hosts", "across_precisions", "max_drop"),
)


class SimulatingFromRequest(RaceSide):
    title = f"--mode {MODE}"
    mode = MODE
    precision = "fp64"  # of the state in gymnasium

    def is_asked(self, request: RaceRequest) -> bool:
        return MODE in modes_asked(request)

    def require(self, request: RaceRequest) -> None:
        for field in _OF_MODELS:
            if getattr(request, field):
                raise InvalidRequest(f"{self.title} steps built-in environments; leave out --{field.replace('_', '-')}")
        if {*modes_asked(request)} != {MODE}:
            raise InvalidRequest(f"{self.title} is raced alone; leave out the modes of models")
        if str(request.device) != "cpu":
            raise InvalidRequest(f"{self.title} is for the CPU; leave out --device")
