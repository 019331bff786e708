"""The one function most users need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from fairlap.engine.measurement import Measurement
from fairlap.engine.native_functions import NativeFunction
from fairlap.engine.timed_calls import time_calls
from fairlap.errors import InvalidRequest


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
    if stream is None:
        unknown = sorted(set(options) - {"clock"})
        if unknown:
            raise InvalidRequest(
                f"{', '.join(unknown)}: only clock= goes without a stream; pass stream= to time on a device"
            )
        return time_calls(fn, **shared, **options)
    from fairlap.engine.cuda.stream_calls import time_on_stream

    return time_on_stream(fn, stream=stream, **shared, **options)
