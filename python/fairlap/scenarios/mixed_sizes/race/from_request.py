"""What a race over a mix of sizes makes of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.sources.registry import require_kind
from fairlap.models.spec import Spec
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.works_from_request import data_seeds_asked, modes_asked, precisions_asked
from fairlap.race.scenario_side import RaceSide
from fairlap.request.fields.sizes.mix import CODE, mix_in
from fairlap.request.fields.sizes.padding import CODE as E_PADDING
from fairlap.request.fields.sizes.padding import Padding, padding_in
from fairlap.request.fields.source import Source
from fairlap.request.names import CALLABLES, COMMAND, HTTP, ContestantName
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import CALIBRATED, Work
from fairlap.scenarios.mixed_sizes.race.materials_of_sizes import with_sizes_of_calls, works_of_sizes
from fairlap.scenarios.mixed_sizes.race.padded_sizes import padded_model, padded_to
from fairlap.worker.process_options import process_options_in
from fairlap.worker.protocol import Prepare
from fairlap.worker.serving import over_http


class MixFromRequest(RaceSide):
    title = "--shapes-from"
    is_for_choices = True
    refuses = (
        *("load", "data", "generate", "shapes", "inputs", "recompile", "max_batch", "processes", "hosts", "sandbox"),
    )
    does = "changes the size of each call"
    is_for_cpu = True
    code = CODE

    def is_asked(self, request: RaceRequest) -> bool:
        return request.shapes_from is not None

    def require(self, request: RaceRequest) -> None:
        if isinstance(request.batch, tuple) and len(request.batch) > 1:
            raise InvalidRequest("--shapes-from is raced at one --batch; give one", code=CODE)
        if set(modes_asked(request)) != {"infer"}:
            raise InvalidRequest("--shapes-from is for inference; leave out --mode", code=CODE)
        if quantized := next((each for each in precisions_asked(request) if each in CALIBRATED), ""):
            raise InvalidRequest(f"--shapes-from is not for {quantized}, which is calibrated at one size", code=CODE)
        for name in request.contestants:
            if process_options_in(name.framework_options).sandbox:
                raise InvalidRequest(f"{name.text} cannot read the inputs of other sizes in a sandbox", code=CODE)
            if padding_of(name) is not None and (name.best or over_http.OPTION in name.framework_options):
                raise InvalidRequest(
                    f"{name.text}: only a contestant with given settings in a process of its own pads", code=E_PADDING
                )

    def require_unasked(self, request: RaceRequest) -> None:
        for name in request.contestants:
            if padding_of(name) is not None:
                raise InvalidRequest(
                    f"{name.text} pads calls of several sizes; give the sizes with --shapes-from", code=E_PADDING
                )

    def with_source(self, request: RaceRequest, source: Source) -> Source:
        assert request.shapes_from is not None
        mix = mix_in(request.shapes_from, data_seeds_asked(request)[0])
        kind = require_kind(source)
        if not kind.names_dimensions:
            raise InvalidRequest(
                "--shapes-from is for ONNX files, .pt2, .keras, hf:FOLDER and module:function, whose sizes calls can "
                f"change ({source.shown} is {kind.title})",
                code=CODE,
            )
        if twice := [name for name, _ in source.dims if name in mix.names]:
            raise InvalidRequest(f"{twice[0]} is in --dims and in --shapes-from; give it once", code=CODE)
        mask = kind.mask if any(padding_of(name) is not None for name in request.contestants) else ""
        return msgspec.structs.replace(source, dims=(*source.dims, *mix.dims(mix.usual)), mix=mix, mask=mask)

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec, notify: Callable[[str], None]) -> Work:
        """Open the model at every size, which proves that it takes them, and at those that contestants pad to."""
        data_seed = data_seeds_asked(request)[0]
        if work.source is None:
            assert request.shapes_from is not None
            work = with_sizes_of_calls(work, mix_in(request.shapes_from, data_seed))
        _open_at_all_sizes(work, request.contestants, data_seed, request.pass_env)
        return work

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        """Open the model at every size before processes run, also where a stored plan runs again."""
        for each in works:
            if each.work.mix is not None:
                _open_at_all_sizes(each.work, plan.contestants, plan.data_seed, plan.pass_env)

    def prepared_with(self, request: Prepare, plan: Plan, materials: Materials, name: ContestantName) -> Prepare:
        """Let a contestant that pads prepare the model in the size that its usual calls are padded to."""
        work, padding = materials.work, padding_of(name)
        if padding is None or work.mix is None:
            return msgspec.structs.replace(request, free_sizes=work.free_sizes)
        found = padded_model(work, padding, name.text, plan.data_seed, plan.pass_env)
        prepared = found.prepared
        return msgspec.structs.replace(
            request, workload=prepared.workload, free_sizes=dict(prepared.free_sizes), padded=found.sizes
        )


def padding_of(name: ContestantName) -> Padding | None:
    """Of a framework; programs and servers have options of their own."""
    if not name.framework or name.framework in (HTTP, COMMAND, CALLABLES):
        return None
    try:
        return padding_in(name.framework_options)
    except InvalidRequest as error:
        raise InvalidRequest(f"{name.text}: {error}", code=error.code) from None


def _open_at_all_sizes(
    work: Work, contestants: Sequence[ContestantName], data_seed: int, passed: tuple[str, ...]
) -> None:
    assert work.mix is not None
    padding = {name: found for name in contestants if (found := padding_of(name)) is not None}
    for name, each in padding.items():
        padded_to(work.mix, each, name.text)
    works_of_sizes(work, data_seed, passed)
    for name, each in padding.items():
        padded_model(work, each, name.text, data_seed, passed)
