"""A measurement for programs: what ``Measurement.to_dict`` and ``fairlap time --json`` give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from fairlap.engine.measurement import SHOWN_QUANTILES, Notice, WarmUp
from fairlap.printed_document import PrintedDocument

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement, Quantity


class MeasuredQuantity(msgspec.Struct, frozen=True, kw_only=True):
    """Figures are None where no sample is valid, and the interval where there are fewer than six."""

    method: str
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    interval_ns: tuple[float, float] | None  # of the median, within this process
    interval_coverage: float | None
    resolution_ns: float
    floor: dict[str, float]
    samples_ns: list[float | None] | msgspec.UnsetType = msgspec.UNSET  # with --raw


class KernelOfCall(msgspec.Struct, frozen=True):
    per_call: float
    ns_per_call: float


class KernelsOfCall(msgspec.Struct, frozen=True):
    kernels: dict[str, KernelOfCall]  # by name
    kernels_absent: str  # why they are not known


class MeasurementDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.measurement/1"):
    """The first quantity is the headline. Every figure is of one process."""

    name: str
    quantities: dict[str, MeasuredQuantity]
    absent: dict[str, str]  # quantities that the method cannot give, and why
    samples: int
    calls_per_sample: int
    stopped_by: str
    elapsed_s: float
    warm_up: WarmUp
    collector_paused: bool
    settings: dict[str, str]
    counts: dict[str, int]
    warnings: tuple[Notice, ...]
    sm_mhz: list[float] | msgspec.UnsetType = msgspec.UNSET  # with --raw, on a GPU: its clock at each sample
    kernels: dict[str, KernelOfCall] | msgspec.UnsetType = msgspec.UNSET  # on a GPU
    kernels_absent: str | msgspec.UnsetType = msgspec.UNSET


def document_of(measured: Measurement, *, raw: bool) -> MeasurementDocument:
    clocks = getattr(measured, "sm_mhz", None)
    return MeasurementDocument(
        name=measured.name,
        quantities={name: _quantity(each, raw) for name, each in measured.quantities.items()},
        absent=dict(measured.absent),
        samples=measured.samples,
        calls_per_sample=measured.calls_per_sample,
        stopped_by=measured.stopped_by,
        elapsed_s=measured.elapsed_s,
        warm_up=measured.warm_up,
        collector_paused=measured.collector_paused,
        settings=dict(measured.settings),
        counts=dict(measured.counts),
        warnings=measured.warnings,
        sm_mhz=clocks.tolist() if raw and clocks is not None else msgspec.UNSET,
    )


def _quantity(quantity: Quantity, raw: bool) -> MeasuredQuantity:
    p50_ns, p90_ns, p99_ns = (_number(ns) for ns in quantity.quantiles(SHOWN_QUANTILES))
    interval = quantity.interval
    has_interval = interval.coverage > 0
    samples = memoryview(quantity.samples).cast("B").cast("d").tolist() if raw else []
    return MeasuredQuantity(
        method=quantity.method,
        p50_ns=p50_ns,
        p90_ns=p90_ns,
        p99_ns=p99_ns,
        interval_ns=(interval.low, interval.high) if has_interval else None,
        interval_coverage=interval.coverage if has_interval else None,
        resolution_ns=quantity.resolution_ns,
        floor=dict(quantity.floor),
        samples_ns=[_number(ns) for ns in samples] if raw else msgspec.UNSET,
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
