"""What a race of digits makes of a request."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.race.scenario_side import RaceSide
from fairlap.request.race_request import RaceRequest
from fairlap.scenarios.digits.scenario import is_of_digits
from fairlap.scenarios.digits.settings import DIGITS
from fairlap.scenarios.setting import E_SETTING


class DigitsFromRequest(RaceSide):
    def is_asked(self, request: RaceRequest) -> bool:
        """Patterns have been replaced by the names that they select."""
        return any(map(is_of_digits, request.models))

    def require_unasked(self, request: RaceRequest) -> None:
        if DIGITS.name in request.scenario_settings:
            raise InvalidRequest(
                f"--{DIGITS.name} is for operations whose names begin with hard-; `fairlap list operations 'hard-*'` "
                "lists them",
                code=E_SETTING,
            )
