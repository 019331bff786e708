"""A measurement taken on a device: the native record made readable."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.arguments import StopRule, WarmUpWish
from fairlap.engine.cuda.notices import notices_of_stream
from fairlap.engine.cuda.request import Rotate, StreamRequest
from fairlap.engine.measurement import Measurement, MeasurementDocument, WarmUp
from fairlap.engine.quantity import Quantity

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

_ABSENT = {
    "wall_ns": "on a stream host and device are timed apart; leave stream= out for one wall clock around the call",
    "device_span_ns": "it needs method='device_span'",
    "context_span_ns": "it needs method='context_span'",
    "kernel_sum_ns": "it needs method='kernel_sum'",
}


@dataclass(frozen=True)
class Activity:
    """One thing that the device did: a kernel, a copy or a fill. Times count from the sample's first start."""

    kind: str
    name: str
    stream: int  # CUPTI's number
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Tally:
    count: int
    total_ns: float


@dataclass(frozen=True)
class StreamMeasurement(Measurement):
    """A measurement on a device. The last four are filled by ``method="kernel_sum"`` alone.

    ``started_ns`` is when the host began each sample, on the engine's clock since its calibration; ``sm_mhz`` the
    device's clock at each, where it was read.
    """

    device: int = -1
    started_ns: Buffer = field(default=b"", repr=False)
    sm_mhz: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    invalid: Mapping[str, int] = field(default_factory=dict)  # samples that are NaN, by reason
    kernels: Mapping[str, Tally] = field(default_factory=dict)  # by name, over all samples
    streams: Mapping[int, Tally] = field(default_factory=dict)  # by CUPTI's number: where the work really ran
    stream_handed_over: int | None = None  # CUPTI's number of it
    last_sample: tuple[Activity, ...] = ()

    def document(self, *, raw: bool = False) -> MeasurementDocument:
        found = super().document(raw=raw)
        if not raw or self.sm_mhz is None:
            return found
        return msgspec.structs.replace(found, sm_mhz=self.sm_mhz.tolist())

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: the times are copied out of the engine's memory."""
        return {**super().__getstate__(), "started_ns": array("d", memoryview(self.started_ns).tobytes())}


def stream_measurement(
    record: _native.StreamRecord,
    clock: _native.Clock,
    request: StreamRequest,
    stop: StopRule,
    warm_up: WarmUpWish,
    *,
    name: str,
    kind_of_call: str,
    collector_paused: bool,
) -> StreamMeasurement:
    columns = {quantity.name: samples for quantity, samples in record.columns.items()}
    headline = f"{request.method}_ns"
    first = dict.fromkeys((headline, "host_issue_ns"))
    ordered = [*first, *(column for column in columns if column not in first)]
    quantities = {column: _quantity(column, columns[column], record, clock, request) for column in ordered}
    return StreamMeasurement(
        name=name,
        quantities=quantities,
        absent={key: why for key, why in _ABSENT.items() if key not in quantities},
        calls_per_sample=record.calls_per_sample,
        stopped_by=record.stopped_by.name,
        elapsed_s=record.elapsed_ns / 1e9,
        warm_up=WarmUp(
            kind=warm_up.kind,
            settled=record.warm_up_settled,
            calls=record.warm_up_calls,
            elapsed_s=record.warm_up_elapsed_ns / 1e9,
            first_call_ns=None if math.isnan(record.first_call_ns) else record.first_call_ns,
        ),
        collector_paused=collector_paused,
        settings=_settings(record, clock, request, kind_of_call),
        warnings=notices_of_stream(record, request, stop, warm_up),
        device=record.device,
        started_ns=record.started_ns,
        invalid={reason.name: count for reason, count in record.invalid.items()},
        kernels={kernel: Tally(*tally) for kernel, tally in record.kernels.items()},
        streams={stream: Tally(*tally) for stream, tally in record.streams.items()},
        stream_handed_over=record.trace_stream,
        last_sample=tuple(
            Activity(kind.name, kernel, stream, start_ns, end_ns)
            for kind, kernel, stream, start_ns, end_ns in record.last_sample
        ),
    )


def _quantity(
    column: str,
    samples: _native.Samples,
    record: _native.StreamRecord,
    clock: _native.Clock,
    request: StreamRequest,
) -> Quantity:
    floor = record.floor
    if column == "host_issue_ns":
        what = "launching the captured graph" if request.graph else "entering and leaving the call"
        host = {"quantum_ns": clock.quantum_ns, "overhead_ns": clock.overhead_ns, "bias_ns": clock.bias_ns}
        return Quantity(
            column,
            f"{clock.source} stamps on {what}, bias subtracted",
            samples,
            clock.quantum_ns / record.calls_per_sample,
            host,
        )
    if column in ("device_span_ns", "context_span_ns"):
        resolution_ns = floor.get("event_quantum_ns", 0.0) / record.calls_per_sample
        gate = record.gate.name if column == "device_span_ns" else ""
        return Quantity(column, _span_method(column, record, request), samples, resolution_ns, floor, gate)
    resolution_ns = floor.get("record_step_ns", 1.0) / record.calls_per_sample
    return Quantity(column, f"activity records of CUPTI {record.cupti_version}", samples, resolution_ns, floor)


def _span_method(column: str, record: _native.StreamRecord, request: StreamRequest) -> str:
    what = "replays of a captured graph" if request.graph else "the calls"
    if column == "context_span_ns":
        return f"events of the whole context around {what}"
    gate = f"{record.gate.name} gate" if record.gate is not _native.Gate.none else "no gate, so launch gaps are in it"
    return f"events on {record.stream} around {what}, {gate}"


def _settings(
    record: _native.StreamRecord, clock: _native.Clock, request: StreamRequest, kind_of_call: str
) -> dict[str, str]:
    settings = {
        "method": request.method,
        "device": str(record.device),
        "stream": record.stream.removeprefix("stream "),
        "clock": clock.source,
        "call": kind_of_call,
        "cache": _cache(record, request),
    }
    if request.method == "device_span":
        settings["gate"] = record.gate.name
    if request.method in ("device_span", "context_span"):
        settings["guard"] = record.guard.name
    if request.graph:
        settings["graph"] = quantity_text.count(record.graph_nodes, "node")
    if request.method == "kernel_sum":
        settings["cupti"] = record.cupti_path
    return settings


def _cache(record: _native.StreamRecord, request: StreamRequest) -> str:
    if request.cache == "warm":
        return "warm"
    if not isinstance(request.cache, Rotate):
        return flushed_text(record.flush_bytes, record.cache_bytes, resets_persisting=record.persisting_lines_reset)
    known = request.cache.bytes_known()
    size = _beside(known, record.cache_bytes) if known else "of unknown size"
    return f"rotated over {len(request.cache.sets)} sets of arguments, {size}{_reset(record.persisting_lines_reset)}"


def flushed_text(flush_bytes: int, cache_bytes: int, *, resets_persisting: bool) -> str:
    """Describe how the cache is made cold before each sample."""
    return f"flushed before each sample with {_beside(flush_bytes, cache_bytes)}{_reset(resets_persisting)}"


def _reset(persisting: bool) -> str:
    return ", persisting lines reset" if persisting else ""


def _beside(nbytes: int, cache_bytes: int) -> str:
    """Such as ``100 MiB, 2.0 times the L2 cache``."""
    times = f", {nbytes / cache_bytes:.1f} times the L2 cache" if cache_bytes else ""
    return f"{quantity_text.size(nbytes)}{times}"
