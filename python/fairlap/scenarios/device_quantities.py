"""Further quantities of a contestant on a GPU, measured when the headline has been.

They are measured on its stream, over all streams of the device, and from the device's own records.

None of them takes the headline's place. One that cannot be measured is absent with the reason. The order is that of
what each leaves behind. On an H100, kernels of 2 us took 2 us before and after records were taken; once the events of a
whole context had been used, each later launch of the process took 1 us more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.errors import FairlapError, NotAvailable
from fairlap.frameworks.contract import Contestant, Unsupported

if TYPE_CHECKING:
    from fairlap.engine.cuda.request import Method
    from fairlap.engine.measurement import Notice
    from fairlap.engine.quantity import Quantity
    from fairlap.meters.sample_clocks import SampleClocks
    from fairlap.scenarios.calls.conditions_in_force import ConditionsInForce

METHODS: tuple[Method, ...] = ("device_span", "kernel_sum", "context_span")
HIDDEN = "hidden"
_SHARE_OF_TIME = 0.5  # of the headline's, for each
_WARM_UP_CALLS = 12  # three of them alone, and some to see whether work comes after its call has returned
_MOST_HIDDEN = 0.1  # of the samples; a busy host delays the look at some
_OF_A_SHORT_MEASUREMENT = ("W_FEW_SAMPLES", "W_WARM_UP_NOT_SETTLED")


@dataclass
class DeviceQuantities:
    measured: dict[str, Quantity] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)


def with_completion(contestant: Contestant, device: int) -> Contestant:
    """End a call on a GPU as in the loop that an expert would write.

    It ends when the framework's own wait has returned, or, where it has none, when the device has done all its work. On
    one core of a machine with an H100, a wait for the device after JAX's own made its calls of 0.16 ms 0.09 ms longer:
    it spins on the core that JAX's threads need. Profiles are by the device's own records.
    """
    from fairlap.engine.cuda.device_completion import device_completion
    from fairlap.scenarios.untimed.device_profile import device_profiler

    done = contestant.done or device_completion(device)
    return replace(contestant, done=done, device=device, profiler=device_profiler(device))


def device_quantities(
    contestant: Contestant,
    call: Callable[[], Any],
    *,
    seconds: float | None,
    samples: int | None,
    calls_per_sample: int,
    conditions: ConditionsInForce | None = None,
) -> DeviceQuantities:
    """With the clock of the GPU at each sample, and without those at which temperature or power slowed it down."""
    from fairlap.meters.sample_clocks import SampleClocks

    found = DeviceQuantities()
    stream = _stream(contestant, call, found)
    with SampleClocks() as clocks:
        for method in METHODS:
            name = f"{method}_ns"
            if method == "device_span" and stream == HIDDEN:
                continue
            limits: dict[str, Any] = {"seconds": None if seconds is None else _SHARE_OF_TIME * seconds}
            limits |= {"samples": samples, "calls_per_sample": calls_per_sample}
            try:
                if conditions is not None:
                    limits = conditions.on_stream(limits, clocks)
                _measure(found, contestant, call, stream, method, limits, clocks)
            except FairlapError as error:
                _require_usable(contestant, error)
                found.absent[name] = str(error)
    return found


def _stream(contestant: Contestant, call: Callable[[], Any], found: DeviceQuantities) -> object:
    if contestant.stream is None:
        found.absent["device_span_ns"] = "the stream that it works on is not known"
        return HIDDEN
    try:
        return contestant.stream.find(call)
    except (FairlapError, Unsupported) as error:
        found.absent["device_span_ns"] = f"its stream was not found by {contestant.stream.how}: {error}"
        return HIDDEN


def _measure(
    found: DeviceQuantities,
    contestant: Contestant,
    call: Callable[[], Any],
    stream: object,
    method: Method,
    limits: Mapping[str, Any],
    clocks: SampleClocks,
) -> None:
    from fairlap.engine.cuda.device_completion import device_completion
    from fairlap.engine.cuda.stream_calls import time_on_stream

    assert contestant.device is not None
    clocks.start(contestant.device)
    measurement = time_on_stream(
        call,
        stream=stream,
        device=contestant.device,
        done=device_completion(contestant.device, contestant.done),
        method=method,
        warmup=_WARM_UP_CALLS,
        **limits,
    )
    if measurement.interrupted:
        raise KeyboardInterrupt
    measurement = clocks.applied(measurement)
    found.notices += [
        replace(notice, text=f"{method}: {notice.text}")
        for notice in measurement.warnings
        if notice.code not in _OF_A_SHORT_MEASUREMENT
    ]
    quantity = measurement.headline
    hidden = measurement.invalid.get("hidden_work", 0)
    if hidden > _MOST_HIDDEN * measurement.samples:
        raise NotAvailable(
            f"in {hidden:,} of {measurement.samples:,} samples work was still running after the stop event; any others "
            "happened to be over in time"
        )
    if not np.isfinite(quantity.values).any():
        reasons = ", ".join(f"{reason} in {count}" for reason, count in measurement.invalid.items())
        raise NotAvailable(f"no sample is valid: {reasons}")
    how = "" if stream == HIDDEN or contestant.stream is None else f", its stream by {contestant.stream.how}"
    found.measured[quantity.name] = replace(quantity, method=f"{quantity.method}{how}")


def _require_usable(contestant: Contestant, error: FairlapError) -> None:
    """Raise the error where it broke the device for this process, as an illegal address does."""
    from fairlap.engine import DeviceFailed
    from fairlap.engine.cuda.device_completion import device_completion

    if not isinstance(error, DeviceFailed) or contestant.device is None:
        return
    try:
        device_completion(contestant.device)(None)
    except Exception:
        raise error from None
