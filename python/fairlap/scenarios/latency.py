"""Latency: time one unit of work at a time, as fast as it will go, on fixed inputs or on what a pipeline feeds.

The messages are the domain types: a process result holds them as they came. A worker imports this module before it
says hello, so whatever is heavy (NumPy, the engine's measuring loop, sensors) is imported where it is first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairlap.engine.measurement import Notice, WarmUp
from fairlap.meters.energy import EnergyOfBlock

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.frameworks.contract import Contestant

BYTES_PER_SAMPLE = 8


class Measure(msgspec.Struct, frozen=True, tag_field="type", tag="measure"):
    """Time calls on the inputs, or on the fed batches. The worker chooses what is null."""

    seconds: float | None = None
    samples: int | None = None
    warmup: int | None = None
    calls_per_sample: int | None = None
    energy: Literal["read"] | None = None  # there are sensors: report their readings over the timed calls


class Feed(msgspec.Struct, frozen=True, tag_field="type", tag="feed"):
    """Feed the measured calls from these files, and write the proof that every sample arrives."""

    files: dict[str, str]  # .npy, by the inputs' names
    samples: int
    seed: int
    path: str


class Fed(msgspec.Struct, frozen=True, tag_field="type", tag="fed"):
    pipeline: str  # which pipeline feeds, and its settings


class Feeding(msgspec.Struct, frozen=True):
    """The time of the fed calls, and the parts of it that were spent waiting for a batch."""

    items: int
    calls: int
    wall_ns: float
    work_ns: float
    waited_ns: float
    source_ns: float | None = None  # the causes of the wait, where the pipeline knows them
    staging_ns: float | None = None
    no_slot_ns: float | None = None


class MeasuredQuantity(msgspec.Struct, frozen=True):
    """One quantity of a measurement."""

    name: str  # wall_ns, host_issue_ns, device_span_ns, kernel_sum_ns
    count: int
    method: str
    resolution_ns: float
    floor: dict[str, float | None] = {}
    unit: Literal["ns"] = "ns"


class Measured(msgspec.Struct, frozen=True, tag_field="type", tag="measured"):
    """Raw samples follow: all of the first quantity in order of time, then all of the second, and so on."""

    quantities: list[MeasuredQuantity]  # the first one is the headline
    calls_per_sample: int
    stopped_by: str
    elapsed_s: float
    bytes: int
    warm_up: WarmUp | None = None
    counts: dict[str, int] = {}  # over the whole measurement: faults, switches, migrations, CPU time
    warnings: list[Notice] = []
    energy: EnergyOfBlock | None = None  # present when it was asked for and a sensor could be read
    feeding: Feeding | None = None  # present when the calls were fed


def require_consistent(measured: Measured, most_bytes: int) -> None:
    """Raise msgspec.ValidationError for numbers that contradict each other."""
    if not measured.quantities or min(quantity.count for quantity in measured.quantities) < 0:
        raise msgspec.ValidationError("a measurement without quantities, or with a negative count")
    expected = BYTES_PER_SAMPLE * sum(quantity.count for quantity in measured.quantities)
    if measured.bytes != expected or expected > most_bytes:
        raise msgspec.ValidationError(f"a measurement of {measured.bytes} bytes, but its counts make {expected}")
    if measured.calls_per_sample < 1:
        raise msgspec.ValidationError(f"{measured.calls_per_sample} calls in a sample")


def take_samples(contestant: Contestant, call: Callable[[], Any], request: Measure) -> Measurement:
    """Time ``call``, which the contestant bound to its inputs."""
    from fairlap import engine

    method: dict[str, Any] = {} if contestant.method is None else {"method": contestant.method}
    return engine.measure(
        call,
        done=contestant.done,
        stream=contestant.stream,
        **method,
        seconds=request.seconds,
        samples=request.samples,
        warmup="auto" if request.warmup is None else request.warmup,
        calls_per_sample="auto" if request.calls_per_sample is None else request.calls_per_sample,
    )


def with_energy(take: Callable[[], Measurement], device: str) -> tuple[Measurement, EnergyOfBlock | None]:
    """The measurement that ``take`` makes, and the energy of its timed calls; None if this process finds no sensor.

    The timed calls follow the warm-up; the milliseconds that the engine computes afterwards do not count.
    """
    from fairlap.meters.energy import EnergyMeter

    meter = EnergyMeter(device)
    if not meter.sensors:
        return take(), None
    begin_ns = meter.begin()
    measurement = take()
    end_ns = meter.end()
    calls = measurement.samples * measurement.calls_per_sample
    timed_from_ns = begin_ns + round(measurement.warm_up.elapsed_s * 1e9)
    read = meter.read_somewhere_in(timed_from_ns, end_ns, round(measurement.elapsed_s * 1e9))
    return measurement, EnergyOfBlock(measurement.elapsed_s, calls, read)


def measured_message(
    measurement: Measurement, energy: EnergyOfBlock | None = None, feeding: Feeding | None = None
) -> tuple[Measured, list[memoryview]]:
    """The message, and the raw samples that follow it."""
    import numpy as np

    quantities = [
        MeasuredQuantity(
            name=name,
            count=len(quantity),
            method=quantity.method,
            resolution_ns=quantity.resolution_ns,
            # JSON has no NaN or infinity.
            floor={key: value if math.isfinite(value) else None for key, value in quantity.floor.items()},
        )
        for name, quantity in measurement.quantities.items()
    ]
    message = Measured(
        quantities=quantities,
        calls_per_sample=measurement.calls_per_sample,
        stopped_by=measurement.stopped_by,
        elapsed_s=measurement.elapsed_s,
        bytes=BYTES_PER_SAMPLE * sum(quantity.count for quantity in quantities),
        warm_up=measurement.warm_up,
        counts=dict(measurement.counts),
        warnings=list(measurement.warnings),
        energy=energy,
        feeding=feeding,
    )
    raw = [np.asarray(quantity.values, dtype="<f8").data.cast("B") for quantity in measurement.quantities.values()]
    return message, raw
