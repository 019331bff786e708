"""What the driver's own calls in a sample cost the host, each timed natively and by itself.

``python -m tests.gpu.proof.parts.timers.driver_calls`` reports the time of each. What a sample costs beyond them is the
timer's own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from fairlap import engine
from fairlap.engine.c_functions import c_function

from ...driver import DriverCalls, PrimaryContext
from ...json_lines import report, run_program

AT_ONCE, TURNS = 100, 15  # far fewer than the driver's queue of about a thousand holds

OF_A_SAMPLE: Mapping[str, int] = {
    "cuStreamWaitValue32_v2": 1,  # the gate
    "cuEventRecord": 2,
    "cuCtxRecordEvent": 1,  # the guard
    "cuEventElapsedTime": 2,
    "cuCtxPushCurrent_v2": 6,
    "cuCtxPopCurrent_v2": 6,
}
"""How often a gated sample of one call has each, without those that ask whether it is over."""
OF_A_PAIR: Mapping[str, int] = {"cuEventRecord": 2, "cuEventElapsedTime": 1}
ASKING: Mapping[str, int] = {"cuEventQuery": 1}
"""Of one look whether a sample is over; there are a few in each."""


@dataclass
class Memory:
    """What the calls read and write."""

    start: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)
    stop: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)
    flag: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)
    on_device: ctypes.c_uint64 = field(default_factory=ctypes.c_uint64)
    milliseconds: ctypes.c_float = field(default_factory=ctypes.c_float)
    context: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)


def costs_ns(context: PrimaryContext) -> Iterator[tuple[str, float]]:
    """Time each call; a driver that lacks one leaves it out."""
    driver, stream, held = DriverCalls(), context.new_stream(), Memory()
    for event in (held.start, held.stop):
        driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        driver.call("cuEventRecord", event, ctypes.c_void_p(stream))
    driver.call("cuMemHostAlloc", ctypes.byref(held.flag), ctypes.c_size_t(64), ctypes.c_uint(3))
    ctypes.memset(held.flag, 1, 64)  # the value that is waited for is there
    driver.call("cuMemHostGetDevicePointer_v2", ctypes.byref(held.on_device), held.flag, ctypes.c_uint(0))
    driver.call("cuCtxGetCurrent", ctypes.byref(held.context))
    arguments = {
        "cuStreamWaitValue32_v2": f"u64:{stream},u64:{held.on_device.value},u32:1,u32:0",
        "cuEventRecord": f"u64:{held.start.value},u64:{stream}",
        "cuCtxRecordEvent": f"u64:{held.context.value},u64:{held.stop.value}",
        "cuEventElapsedTime": f"u64:{ctypes.addressof(held.milliseconds)},u64:{held.start.value},u64:{held.stop.value}",
        "cuEventQuery": f"u64:{held.stop.value}",
        "cuCtxPushCurrent_v2": f"u64:{held.context.value}",
        "cuCtxPopCurrent_v2": f"u64:{ctypes.addressof(held.context)}",
    }
    found: dict[str, list[float]] = {name: [] for name in arguments if driver.has(name)}
    for _ in range(TURNS):
        for name, own in found.items():  # pushed contexts are popped by the call after it
            call = c_function(f"{driver.path}:{name}", arguments[name])
            timed = engine.time_calls(call, samples=1, warmup=0, calls_per_sample=AT_ONCE)
            own.append(float(timed.wall_ns[0]))
            context.synchronize()
    for event in (held.start, held.stop):
        driver.call("cuEventDestroy_v2", event)
    driver.call("cuMemFreeHost", held.flag)
    yield from ((name, median(own)) for name, own in found.items())


def sum_ns(costs: Mapping[str, float], calls: Mapping[str, int]) -> float:
    """Add up what the calls of a sample cost, of those that were timed."""
    return sum(times * costs[name] for name, times in calls.items() if name in costs)


def _report_all() -> None:
    context = PrimaryContext()
    for name, ns in costs_ns(context):
        report(call=name, ns=ns)
    context.close()


if __name__ == "__main__":
    run_program(_report_all)
