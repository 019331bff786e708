"""What a race of load makes of a request: what can be asked of its works, checked before the plan is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.files.atomic_files import why_no_folder
from fairlap.models.spec import BATCH, Spec
from fairlap.race.scenario_side import RaceSide
from fairlap.request.fields.load import E_LOAD, Load, load_of
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.scenarios.load.loadgen_messages import require_loadgen
from fairlap.worker.serving.over_http import OPTION


class LoadFromRequest(RaceSide):
    title = "a race of load"
    batch = 1

    def is_asked(self, request: RaceRequest) -> bool:
        return request.load is not None

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec, notify: Callable[[str], None]) -> Work:
        assert request.load is not None
        return _with_load(request, load_of(request.load), work, spec)


def _with_load(request: RaceRequest, load: Load, work: Work, spec: Spec) -> Work:
    if work.mode != LoadFromRequest.mode:
        raise InvalidRequest(f"requests are answered by inference; leave out --mode {work.mode}", code=E_LOAD)
    if request.data is not None:
        raise InvalidRequest("requests bring their own items; leave out --data", code=E_LOAD)
    if not spec.computes or not work.is_model:
        raise InvalidRequest(f"{work.model} computes nothing that an answer could be checked by", code=E_LOAD)
    if load.largest_batch > 1 and (work.batch != 1 or work.source is not None or not _in_batches(spec)):
        raise InvalidRequest(
            f"--largest-batch joins requests of one item each, which {work.model} at batch {work.batch} cannot",
            code=E_LOAD,
        )
    served = [name.text for name in request.contestants if OPTION in name.framework_options]
    if load.largest_batch > 1 and served:
        raise InvalidRequest(
            f"--largest-batch joins requests before a call, and the server of {served[0]} takes single ones",
            code=E_LOAD,
        )
    _require_place_of_logs(load)
    if load.scenario is not None:
        require_loadgen()
        if work.batch != 1:
            raise InvalidRequest(f"LoadGen asks about single items; leave out --batch {work.batch}", code=E_LOAD)
    _require_first_token(load, work, spec)
    _require_own_prompts(work)
    return msgspec.structs.replace(work, load=load)


def _require_place_of_logs(load: Load) -> None:
    if load.logs and (why := why_no_folder(Path(load.logs))):
        raise InvalidRequest(f"the logs of LoadGen cannot be written to {load.logs}: {why}", code=E_LOAD)


def _require_first_token(load: Load, work: Work, spec: Spec) -> None:
    if load.first_token_s is not None and not spec.continuation:
        text = f"--first-token is for models that generate, such as gpt2_generate; {work.model} does not"
        raise InvalidRequest(text, code=E_LOAD)


def _require_own_prompts(work: Work) -> None:
    if work.source is not None and work.source.shared:
        text = f"--generate {work.source.answer_text}: prompts under load do not begin alike; leave out the first"
        raise InvalidRequest(text, code=E_LOAD)


def _in_batches(spec: Spec) -> bool:
    return all(BATCH in tensor.shape for tensor in (*spec.inputs, *spec.outputs))
