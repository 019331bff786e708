"""The conditions of a GPU that a contestant's calls are timed under, made and kept in its worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.request.fields.device_conditions import CACHE, REGIME, DeviceConditions
from fairlap.scenarios.regime import A_WHILE_S, Regime

if TYPE_CHECKING:
    from fairlap.engine.measurement import Notice
    from fairlap.meters.sample_clocks import SampleClocks
    from fairlap.scenarios.calls.latency_messages import Measure

_FEWEST_CALLS = 3  # of a burst, however long they are


class ConditionsInForce:
    """Of one measurement: first the calls that the host times, then those on the device's stream."""

    def __init__(self, contestant: Contestant, call: Callable[[], Any], wanted: DeviceConditions) -> None:
        from fairlap.engine.cuda.cold_cache import ColdCache

        if contestant.device is None:
            raise Unsupported(f"{wanted.text} needs a GPU, and this contestant does not work on one")
        self._contestant, self._call, self._device = contestant, call, contestant.device
        self._regime = Regime(wanted.regime)
        self._cold = ColdCache(self._device) if wanted.cache == "cold" else None
        self._of_cache: dict[str, str] = {}
        self._burst_s = A_WHILE_S

    @property
    def before_each(self) -> Callable[[], object] | None:
        """What makes the cache cold before a call, natively."""
        return None if self._cold is None else self._cold.make_cold

    def calls_are_timed(self) -> None:
        """Give the memory back that made the cache cold, which is not the contestant's."""
        if self._cold is not None:
            self._of_cache = {CACHE: self._cold.text}
        self._cold = None

    @property
    def in_force(self) -> dict[str, str]:
        return self._of_cache | ({REGIME: self._regime.text} if self._regime.kind else {})

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self._regime.notices

    def settle(self, request: Measure) -> Measure:
        """Warm up, then rest or load the device; return what is to be measured after that."""
        from fairlap.engine import time_calls
        from fairlap.meters.sample_clocks import SampleClocks

        if not self._regime.kind:
            return request
        first = time_calls(
            self._call,
            done=self._contestant.done,
            seconds=A_WHILE_S,
            calls_per_sample=request.calls_per_sample or "auto",
            before_each=self.before_each,
        )
        if first.interrupted:
            raise KeyboardInterrupt
        self._burst_s = max(A_WHILE_S, _FEWEST_CALLS * first.median_ns / 1e9)
        with SampleClocks() as clocks:
            self._regime.load(lambda: self._work_a_while(clocks))
        self._regime.before_turn()
        limits = self.limits({"seconds": request.seconds, "samples": request.samples})
        return msgspec.structs.replace(request, warmup=1, calls_per_sample=first.calls_per_sample, **limits)

    def limits(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Limit a burst, which would warm the device up, to a short time where no number of samples is asked for."""
        if self._regime.kind != "burst" or wanted["samples"] is not None:
            return dict(wanted)
        seconds = wanted["seconds"]
        return {**wanted, "seconds": self._burst_s if seconds is None else min(seconds, self._burst_s)}

    def on_stream(self, limits: Mapping[str, Any], clocks: SampleClocks) -> dict[str, Any]:
        """Rest or load the device once more, and return the options of a measurement on it with these limits."""
        self._regime.resume(lambda: self._work_a_while(clocks))
        cold = {"cache": "flush", "calls_per_sample": 1} if self._of_cache else {}
        return self.limits(limits) | cold

    def _work_a_while(self, clocks: SampleClocks) -> float | None:
        """Return the clock of the device meanwhile, where it is known."""
        from fairlap.engine.cuda.stream_calls import time_on_stream

        clocks.start(self._device)
        load = time_on_stream(
            self._call,
            stream="hidden",
            device=self._device,
            done=self._contestant.done,
            method="host_issue",
            seconds=A_WHILE_S,
            warmup=0,
            calls_per_sample=1,
        )
        if load.interrupted:
            raise KeyboardInterrupt
        return clocks.applied(load).headline.sm_mhz
