"""What a race of calls makes of a request: the conditions of the GPU that they are timed under."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.spec import Spec
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.scenario_side import RaceSide, race_sides
from fairlap.request.fields.device_conditions import CODE, DeviceConditions
from fairlap.request.names import COMMAND, HTTP
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.worker.serving import over_http


class CallsFromRequest(RaceSide):
    title = "--cache cold or --regime"
    is_for_choices = True

    def is_asked(self, request: RaceRequest) -> bool:
        return request.cache != "warm" or request.regime is not None

    def require(self, request: RaceRequest) -> None:
        option = f"--regime {request.regime}" if request.cache == "warm" else "--cache cold"
        _require_gpu(str(request.device), option)
        other = next((side for side in race_sides() if side is not self and side.is_asked(request)), None)
        if other is not None:
            what = other.title or "what --mode asks for"
            raise InvalidRequest(f"{option} is for calls of a model that are timed alone, not for {what}", code=CODE)
        if request.data is not None:
            raise InvalidRequest(f"{option}: a pipeline feeds while calls are timed; leave out --data", code=CODE)
        for name in request.contestants:
            if request.commands or name.framework in (HTTP, COMMAND) or over_http.OPTION in name.framework_options:
                raise InvalidRequest(
                    f"{option} is for contestants that compute in a process of fairlap; {name.text} does not", code=CODE
                )

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec, notify: Callable[[str], None]) -> Work:
        return msgspec.structs.replace(work, on_device=DeviceConditions(request.cache, request.regime or ""))

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        for each in works:
            if each.work.on_device is not None:
                _require_gpu(plan.device, each.work.on_device.text)


def _require_gpu(device: str, option: str) -> None:
    if device == "cpu":
        raise InvalidRequest(f"{option} needs a GPU; add --device cuda", code=CODE)
