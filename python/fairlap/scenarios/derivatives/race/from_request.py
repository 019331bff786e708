"""What a race of derivatives makes of a request."""

from __future__ import annotations

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.modes import DERIVATIVES
from fairlap.race.planning.works_from_request import modes_asked
from fairlap.race.scenario_side import OF_MODELS_ALONE, RaceSide
from fairlap.request.fields.source import PREFIX_OF_DERIVATIVES, Source, is_callable_name
from fairlap.request.race_request import RaceRequest


class DerivativesFromRequest(RaceSide):
    title = "a race of derivatives"
    refuses = (*(each for each in OF_MODELS_ALONE if each not in ("shapes", "ranges", "recompile")), "to_score")
    does = "calls no model"

    def is_asked(self, request: RaceRequest) -> bool:
        return not {*modes_asked(request)}.isdisjoint(DERIVATIVES)

    def with_source(self, request: RaceRequest, source: Source) -> Source:
        """Let a function of the user's be opened as its derivative in the mode."""
        modes = modes_asked(request)
        if not is_callable_name(source.path):
            raise InvalidRequest(
                f"--mode {modes[0]} is of built-in functions and of module:function; {source.text} is a model",
                code="E_SOURCE",
            )
        if len(modes) > 1:
            raise InvalidRequest(f"race one derivative of {source.text} at a time; --mode has {', '.join(modes)}")
        return msgspec.structs.replace(source, path=f"{PREFIX_OF_DERIVATIVES}{modes[0]}:{source.path}")
