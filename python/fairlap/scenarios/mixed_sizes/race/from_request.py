"""What a race over a mix of sizes makes of a request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.sources.registry import require_kind
from fairlap.models.spec import Spec
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.works_from_request import data_seeds_asked, modes_asked, precisions_asked
from fairlap.race.scenario_side import RaceSide
from fairlap.request.fields.mix import CODE, mix_in
from fairlap.request.fields.source import Source
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.scenarios.mixed_sizes.race.materials_of_sizes import works_of_sizes
from fairlap.worker.process_options import process_options_in

_OF_ONE_SIZE = (
    "load",
    "data",
    "generate",
    "shapes",
    "inputs",
    "batch",
    "recompile",
    "max_batch",
    "processes",
    "hosts",
    "sandbox",
)


class MixFromRequest(RaceSide):
    title = "--shapes-from"

    def is_asked(self, request: RaceRequest) -> bool:
        return request.shapes_from is not None

    def require(self, request: RaceRequest) -> None:
        for field in _OF_ONE_SIZE:
            if getattr(request, field):
                option = "fairlap load" if field == "load" else f"--{field.replace('_', '-')}"
                raise InvalidRequest(f"--shapes-from changes the size of each call; leave out {option}", code=CODE)
        if set(modes_asked(request)) != {"infer"}:
            raise InvalidRequest("--shapes-from is for inference; leave out --mode", code=CODE)
        if "int8" in precisions_asked(request):
            raise InvalidRequest("--shapes-from is not for int8, which is calibrated at one size", code=CODE)
        if str(request.device) != "cpu":
            raise InvalidRequest("--shapes-from is for the CPU; leave out --device", code=CODE)
        for name in request.contestants:
            if process_options_in(name.framework_options).sandbox:
                raise InvalidRequest(f"{name.text} cannot read the inputs of other sizes in a sandbox", code=CODE)

    def with_source(self, request: RaceRequest, source: Source) -> Source:
        assert request.shapes_from is not None
        mix = mix_in(request.shapes_from)
        kind = require_kind(source)
        if not kind.names_dimensions:
            raise InvalidRequest(
                f"--shapes-from is for ONNX files, whose dimensions have names ({source.shown} is {kind.title})",
                code=CODE,
            )
        if twice := [name for name, _ in source.dims if name in mix.names]:
            raise InvalidRequest(f"{twice[0]} is in --dims and in --shapes-from; give it once", code=CODE)
        return msgspec.structs.replace(source, dims=(*source.dims, *mix.dims(mix.usual)), mix=mix)

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec) -> Work:
        """Open the model at every size, which proves that it takes them."""
        if work.mix is None:
            raise InvalidRequest(
                f"--shapes-from is for a model of your own, whose dimensions have names; {work.model} has fixed inputs",
                code=CODE,
            )
        works_of_sizes(work, data_seeds_asked(request)[0], request.pass_env)
        return work

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        """Open the model at every size before processes run, also where a stored plan runs again."""
        for each in works:
            if each.work.mix is not None:
                works_of_sizes(each.work, plan.data_seed, plan.pass_env)
