"""The typed face of the native engine: clocks, the measured loop, CUDA streams, floors."""

from __future__ import annotations

from fairlap.engine._native import Clock, Interval, MeasurementInProgress, __version__
from fairlap.engine.clocks import clock_named
from fairlap.engine.cuda_errors import DeviceFailed
from fairlap.engine.cuda_measurement import StreamMeasurement
from fairlap.engine.cuda_request import Rotate
from fairlap.engine.floors import floor
from fairlap.engine.measurement import Measurement, Notice, Quantity, WarmUp
from fairlap.engine.measuring import measure
from fairlap.engine.native_functions import NativeFunction
from fairlap.engine.on_stream import time_on_stream
from fairlap.engine.streams import stream_of
from fairlap.engine.time_calls import time_calls

__all__ = [
    "Clock",
    "DeviceFailed",
    "Interval",
    "Measurement",
    "MeasurementInProgress",
    "NativeFunction",
    "Notice",
    "Quantity",
    "Rotate",
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
