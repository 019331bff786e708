"""What a race of solvers makes of a request."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.race.planning.works_from_request import modes_asked, precisions_asked
from fairlap.race.scenario_side import OF_MODELS_ALONE, RaceSide
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Mode
from fairlap.scenarios.setting import E_SETTING
from fairlap.scenarios.solving.settings import SETTINGS
from fairlap.worker.process_options import process_options_in

MODE: Mode = "solve"
MODES: tuple[Mode, ...] = (MODE, "solve-grad")


class SolvingFromRequest(RaceSide):
    title = f"--mode {MODE}"
    mode = MODE
    precision = "fp64"  # tolerances below 1e-6 mean nothing in fp32
    refuses = (*OF_MODELS_ALONE, "to_score", "max_batch", "profile", "sandbox")
    does = "solves built-in problems"
    is_for_cpu = True

    def is_asked(self, request: RaceRequest) -> bool:
        return not {*modes_asked(request)}.isdisjoint(MODES)

    def require(self, request: RaceRequest) -> None:
        if not {*modes_asked(request)} <= {*MODES}:
            raise InvalidRequest(f"{self.title} is raced alone; leave out the modes of models")
        if (other := {*precisions_asked(request)} - {self.precision}) and (given := ", ".join(sorted(other))):
            raise InvalidRequest(
                f"{self.title} solves in fp64, since rounding decides in {given}; leave out --precision",
                code="E_PRECISION",
            )
        for name in request.contestants:
            if process_options_in(name.framework_options).sandbox:
                raise InvalidRequest(f"{name.text} cannot read the inputs of other tolerances in a sandbox")

    def require_unasked(self, request: RaceRequest) -> None:
        for each in SETTINGS:
            if each.name in request.scenario_settings:
                raise InvalidRequest(f"--{each.name} is for solvers; add --mode {MODE}", code=E_SETTING)
