"""Timing on a CUDA stream: the request checked, the native run, the record made readable."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Literal

from fairlap.engine import _native
from fairlap.engine.arguments import calls_per_sample_wish, given_name, positive_number, stop_rule, truth, warm_up_wish
from fairlap.engine.clocks import clock_named
from fairlap.engine.cuda.libraries import DeviceFailed, cupti_places, native_errors_explained
from fairlap.engine.cuda.notices import ENDED_BY_THE_DEVICE
from fairlap.engine.cuda.request import Gate, Method, Rotate, checked_request, require_cold, works_for
from fairlap.engine.cuda.stream_measurement import StreamMeasurement, stream_measurement
from fairlap.engine.cuda.streams import stream_of
from fairlap.engine.measurement import CallableRaised
from fairlap.engine.native_functions import NativeFunction, native_function_of
from fairlap.engine.timed_calls import kept_samples, name_of
from fairlap.errors import NotAvailable, described


# A captured graph writes the same memory at every replay, also what the call had freed by the time it returned. The
# allocators of PyTorch and CuPy give such memory to the next who asks, since the capture is not theirs. For as long as
# a graph is captured and replayed, this thread therefore allocates from a pool of its own. Other threads that take part
# in the call, as in PyTorch's backward pass, do not.
@contextmanager
def kept_for_replays(device: int | None) -> Iterator[None]:
    """Frameworks that are not imported allocate nothing, and none is imported for this."""
    with ExitStack() as pools:
        if (torch := sys.modules.get("torch")) is not None and _has_pools(torch):
            pools.enter_context(torch.cuda.use_mem_pool(torch.cuda.MemPool(), device=device))
        if (cupy := sys.modules.get("cupy")) is not None:
            pools.enter_context(cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc))
        yield


def _has_pools(torch: Any) -> bool:
    """From PyTorch 2.5 on, where it uses CUDA at all."""
    return torch.cuda.is_initialized() and hasattr(torch.cuda, "use_mem_pool")


QUANTUM_SHARE = 0.01
"""With ``calls_per_sample="auto"`` the event quantum is at most this share of a sample."""


def time_on_stream(
    fn: Callable[..., object] | NativeFunction | object,
    *,
    stream: object,
    device: int | None = None,
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    done: Callable[[Any], object] | NativeFunction | object | None = None,
    samples: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    warmup: int | Literal["auto"] = "auto",
    calls_per_sample: int | Literal["auto"] = "auto",
    method: Method = "device_span",
    cache: Literal["warm", "flush"] | Rotate = "warm",
    gate: Gate = "auto",
    graph: bool = False,
    guard: bool = True,
    timeout_s: float = 60.0,
    gate_timeout_s: float = 0.5,
    clock: str = "auto",
    pause_gc: bool = True,
    name: str | None = None,
) -> StreamMeasurement:
    """Time calls of ``fn(*args, **kwargs)`` on a borrowed CUDA stream, every sample taken natively.

    ``stream`` is anything :func:`stream_of` takes, or ``"hidden"`` for a framework that does not show its streams.

    ``method`` is the quantity, and never falls back to another: ``device_span`` (event to event on the stream),
    ``context_span`` (event to event over every stream of the context), ``kernel_sum`` (the device's own records, with
    busy time, gaps and copies), ``host_issue`` (only how long the call takes to return).

    ``gate`` holds the stream while the host enqueues a sample, so that launch gaps are not in the span; ``auto`` takes
    the best that works and the result names it. ``cache`` is ``warm``, ``flush`` (twice the L2 cache is written before
    each sample) or ``Rotate``; both reset lines that persist in the cache. ``graph`` captures the call once and times
    its replays; meanwhile PyTorch and CuPy allocate from a separate pool on this thread. ``guard`` invalidates a
    sample whose work outlives its stop event, and refuses a span whose work comes onto the stream after its call has
    returned. A sample that is invalid is NaN and counted under ``warnings``.

    ``done`` is called with what the call returned: after the stop event in ``device_span``, before it in
    ``context_span``, where the framework may enqueue after its call has returned. ``timeout_s`` bounds the wait for
    the device, ``gate_timeout_s`` the time that the call may take to return while the stream is held.
    """
    handle = stream_of(stream, device)
    stop = stop_rule(samples, seconds, target)
    warm_up = warm_up_wish(warmup)
    calls = calls_per_sample_wish(calls_per_sample)
    request = checked_request(
        handle, method=method, gate=gate, cache=cache, graph=graph, guard=guard, args=args, calls=calls, done=done
    )
    timeout_s = positive_number("timeout_s", timeout_s)
    gate_timeout_s = positive_number("gate_timeout_s", gate_timeout_s)
    on_clock = clock_named(clock)
    pause_gc = truth("pause_gc", pause_gc)
    name = given_name(name)
    works = works_for(fn, args, kwargs, done, cache)
    if absent := _native.cuda_absent_because():
        raise NotAvailable(f"there is no CUDA here: {absent}")
    require_cold(request, handle)
    memory = kept_for_replays(handle.device) if request.graph else nullcontext()
    with native_errors_explained(), memory:
        record = _native.time_on_stream(
            works,
            handle.address,
            -1 if handle.device is None else handle.device,
            on_clock,
            method=_native.Method[request.method],
            samples=stop.samples,
            seconds=stop.seconds,
            target=stop.target,
            calls_per_sample=calls,
            quantum_share=QUANTUM_SHARE,
            warm_up=_native.WarmUpKind[warm_up.kind],
            warm_up_calls=warm_up.calls,
            flush=request.cache == "flush",
            gate=None if request.gate == "auto" else _native.Gate[request.gate],
            graph=request.graph,
            guard=request.guard,
            timeout_s=timeout_s,
            gate_timeout_s=gate_timeout_s,
            cupti_places=cupti_places(_native.cuda_driver_version()) if request.method == "kernel_sum" else [],
            pause_collector=pause_gc,
        )
    native = native_function_of(fn)
    result = stream_measurement(
        record,
        on_clock,
        request,
        stop,
        warm_up,
        name=name or (native.name if native else name_of(fn)),
        kind_of_call="native" if native else "Python",
        collector_paused=pause_gc,
    )
    _raise_if_ended_badly(record, result)
    return result


def _raise_if_ended_badly(record: _native.StreamRecord, result: StreamMeasurement) -> None:
    kept = kept_samples(result)
    if record.stopped_by is _native.StopReason.raised:
        error = record.exception
        raise CallableRaised(f"{result.name} raised {described(error)}; {kept}", result) from error
    if record.stopped_by.name in ENDED_BY_THE_DEVICE:
        raise DeviceFailed(f"{result.name}: {record.error} ({kept})", result)
