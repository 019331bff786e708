"""Latency: time one unit of work at a time, as fast as it will go, on fixed inputs or on what a pipeline feeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fairlap.meters.energy import EnergyOfBlock
from fairlap.scenarios.calls.latency_messages import BYTES_PER_SAMPLE, Drawn, Feeding, Measured, MeasuredQuantity

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.scenarios.device_quantities import DeviceQuantities


def with_energy(take: Callable[[], Measurement], device: str) -> tuple[Measurement, EnergyOfBlock | None]:
    """Measure by ``take``, with the energy of its timed calls; None if this process finds no sensor.

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
    return measurement, EnergyOfBlock(
        measurement.elapsed_s,
        calls,
        read,
        meter.device_busy_share,
        meter.device_slowed_share,
        meter.device_sm_mhz,
    )


def measured_message(
    measurement: Measurement,
    drawn: Drawn = Drawn(),  # noqa: B008  (frozen)
    energy: EnergyOfBlock | None = None,
    feeding: Feeding | None = None,
    on_device: DeviceQuantities | None = None,
    *,
    dealt: bool = False,
    device_conditions: Mapping[str, str] | None = None,
) -> tuple[Measured, list[memoryview]]:
    """Make the message, and the raw samples that follow it; the measurement's own quantities come first."""
    import numpy as np

    further = {} if on_device is None else on_device.measured
    measured = {**measurement.quantities, **further}
    quantities = [
        MeasuredQuantity(
            name=name,
            count=len(quantity),
            method=quantity.method,
            resolution_ns=quantity.resolution_ns,
            # JSON has no NaN or infinity.
            floor={key: value if math.isfinite(value) else None for key, value in quantity.floor.items()},
            gate=quantity.gate,
            sm_mhz=quantity.sm_mhz,
        )
        for name, quantity in measured.items()
    ]
    message = Measured(
        quantities=quantities,
        calls_per_sample=measurement.calls_per_sample,
        stopped_by=measurement.stopped_by,
        elapsed_s=measurement.elapsed_s,
        bytes=BYTES_PER_SAMPLE * sum(quantity.count for quantity in quantities),
        warm_up=measurement.warm_up,
        counts=dict(measurement.counts),
        warnings=[*measurement.warnings, *([] if on_device is None else on_device.notices)],
        absent={} if on_device is None else on_device.absent,
        energy=energy,
        feeding=feeding,
        drawn=drawn,
        dealt=dealt,
        device_conditions=dict(device_conditions or {}),
    )
    raw = [np.asarray(quantity.values, dtype="<f8").data.cast("B") for quantity in measured.values()]
    return message, raw
