"""What a race of input pipelines makes of a request."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.race.planning.works_from_request import modes_asked, precisions_asked
from fairlap.race.scenario_side import RaceSide
from fairlap.request.fields.data.stored_data import CODE, PREFIX_OF_DATA, stored_data_in
from fairlap.request.race_request import RaceRequest

_OF_MODELS = (
    *("load", "data", "generate", "shapes", "shapes_from", "dims", "inputs", "ranges", "reference", "metric", "labels"),
    *("loss", "recompile", "max_batch", "processes", "hosts", "sandbox", "profile", "to_score", "train_on", "items"),
)


class PassesFromRequest(RaceSide):
    title = "a race of input pipelines"
    refuses = _OF_MODELS
    does = "runs no model"
    is_for_cpu = True  # they deliver to host memory
    code = CODE

    def is_asked(self, request: RaceRequest) -> bool:
        return any(model.startswith(PREFIX_OF_DATA) for model in request.models)

    def require(self, request: RaceRequest) -> None:
        for model in request.models:
            if not model.startswith(PREFIX_OF_DATA):
                raise InvalidRequest(f"pipelines race over data alone; race {model} separately", code=CODE)
            stored_data_in(model)
        if request.batch is not None:
            raise InvalidRequest(
                f"write the batch of pipelines after the data: {request.models[0]}:batch=64", code=CODE
            )
        if set(modes_asked(request)) != {"infer"} or set(precisions_asked(request)) != {"fp32"}:
            raise InvalidRequest(f"{self.title} runs no model; leave out --mode and --precision", code=CODE)
