"""The typed face of the native engine: clocks, the measured loop, CUDA streams, floors, feeding.

Names are looked up on first use, so that a worker without a GPU does not load what times streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlap.lazily import lookup

if TYPE_CHECKING:
    from fairlap.engine._native import (
        Batch,
        BatchReleased,
        Clock,
        CopyTimes,
        Interval,
        LinkFailed,
        MeasurementInProgress,
        StallTimes,
        __version__,
    )
    from fairlap.engine.clocks import clock_named
    from fairlap.engine.cuda.libraries import DeviceFailed
    from fairlap.engine.cuda.request import Rotate
    from fairlap.engine.cuda.stream_calls import time_on_stream
    from fairlap.engine.cuda.stream_measurement import StreamMeasurement
    from fairlap.engine.cuda.streams import stream_of
    from fairlap.engine.feeding.feeder import Feeder, FeedingFailed, RawFile
    from fairlap.engine.floors import floor
    from fairlap.engine.measure_call import measure
    from fairlap.engine.measurement import Measurement, Notice, WarmUp
    from fairlap.engine.native_functions import NativeFunction
    from fairlap.engine.quantity import Quantity
    from fairlap.engine.timed_calls import DrawnCalls, time_calls

__all__ = [
    "Batch",
    "BatchReleased",
    "Clock",
    "CopyTimes",
    "DeviceFailed",
    "DrawnCalls",
    "Feeder",
    "FeedingFailed",
    "Interval",
    "LinkFailed",
    "Measurement",
    "MeasurementInProgress",
    "NativeFunction",
    "Notice",
    "Quantity",
    "RawFile",
    "Rotate",
    "StallTimes",
    "StreamMeasurement",
    "WarmUp",
    "__version__",
    "clock_named",
    "floor",
    "measure",
    "stream_of",
    "time_calls",
    "time_on_stream",
]

_HOME = {
    "Batch": "fairlap.engine._native",
    "BatchReleased": "fairlap.engine._native",
    "Clock": "fairlap.engine._native",
    "CopyTimes": "fairlap.engine._native",
    "DeviceFailed": "fairlap.engine.cuda.libraries",
    "DrawnCalls": "fairlap.engine.timed_calls",
    "Feeder": "fairlap.engine.feeding.feeder",
    "FeedingFailed": "fairlap.engine.feeding.feeder",
    "Interval": "fairlap.engine._native",
    "LinkFailed": "fairlap.engine._native",
    "Measurement": "fairlap.engine.measurement",
    "MeasurementInProgress": "fairlap.engine._native",
    "NativeFunction": "fairlap.engine.native_functions",
    "Notice": "fairlap.engine.measurement",
    "Quantity": "fairlap.engine.quantity",
    "RawFile": "fairlap.engine.feeding.feeder",
    "Rotate": "fairlap.engine.cuda.request",
    "StallTimes": "fairlap.engine._native",
    "StreamMeasurement": "fairlap.engine.cuda.stream_measurement",
    "WarmUp": "fairlap.engine.measurement",
    "__version__": "fairlap.engine._native",
    "clock_named": "fairlap.engine.clocks",
    "floor": "fairlap.engine.floors",
    "measure": "fairlap.engine.measure_call",
    "stream_of": "fairlap.engine.cuda.streams",
    "time_calls": "fairlap.engine.timed_calls",
    "time_on_stream": "fairlap.engine.cuda.stream_calls",
}

# What only reads results imports modules of this package, and works where the native module is not built.
__getattr__ = lookup(__name__, _HOME, on_first_use=("_native",))


def __dir__() -> list[str]:
    return sorted(__all__)
