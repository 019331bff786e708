"""The one function most users need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from fairlap.engine.measurement import Measurement
from fairlap.engine.native_functions import NativeFunction, native_function_of
from fairlap.engine.timed_calls import body_does_not_run, never_started, time_calls
from fairlap.errors import InvalidRequest

_LONGEST_CREATION_NS = 1e6  # of a coroutine, with what a function does before it makes one


_OPTIONS = frozenset(inspect.signature(time_calls).parameters)


def measure(
    fn: Callable[..., object] | NativeFunction | object,
    *,
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    done: Callable[[Any], object] | NativeFunction | object | None = None,
    stream: object | None = None,
    samples: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    warmup: int | Literal["auto"] = "auto",
    calls_per_sample: int | Literal["auto"] = "auto",
    pause_gc: bool = True,
    name: str | None = None,
    **options: Any,
) -> Measurement:
    """Time one callable: on the CPU's clock, or on a CUDA stream when ``stream`` is given.

    The stream may come from PyTorch, CuPy or ONNX Runtime, or be an integer address. Without a stream
    the one further option is ``clock``; with one, see :func:`fairlap.engine.time_on_stream`.

    Unless ``warmup`` is 0, a short call is made once more after the samples, since what it returns may be a coroutine
    that nothing has run.
    """
    shared: dict[str, Any] = {
        "args": args,
        "kwargs": kwargs,
        "done": done,
        "samples": samples,
        "seconds": seconds,
        "target": target,
        "warmup": warmup,
        "calls_per_sample": calls_per_sample,
        "pause_gc": pause_gc,
        "name": name,
    }
    result = timed(fn, stream=stream, **shared, **options)
    if stream is None and done is None and warmup != 0 and not result.interrupted:
        require_started(fn, args, kwargs, result)
    return result


def timed(fn: object, *, stream: object | None, **options: Any) -> Measurement:
    """Measure as asked, and make no call besides."""
    if stream is None:
        if unknown := sorted(options.keys() - _OPTIONS):
            raise InvalidRequest(
                f"{', '.join(unknown)}: only clock= goes without a stream; pass stream= to time on a device"
            )
        return time_calls(fn, **options)
    from fairlap.engine.cuda.stream_calls import time_on_stream

    return time_on_stream(fn, stream=stream, **options)


def require_started(
    fn: object, args: tuple[object, ...], kwargs: Mapping[str, object] | None, measured: Measurement
) -> None:
    """Refuse a callable that returns a coroutine or a generator of which nothing has run: its creation was timed.

    It is called once more, unless a call takes longer than a creation.
    """
    if not callable(fn) or native_function_of(fn) is not None or not measured.median_ns < _LONGEST_CREATION_NS:
        return
    try:
        returned = fn(*args, **dict(kwargs or {}))
    except Exception:  # it need not take one more call
        return
    if never_started(returned):
        raise InvalidRequest(body_does_not_run(measured.name), code="E_DEFERRED_WORK")
