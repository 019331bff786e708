"""Latency: time one unit of work at a time, as fast as it will go, on fixed inputs or on what a pipeline feeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlap.meters.energy import EnergyOfBlock
from fairlap.scenarios.calls.latency_messages import (
    BYTES_PER_SAMPLE,
    Drawn,
    Feeding,
    Measure,
    Measured,
    MeasuredQuantity,
)

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.scenarios.device_quantities import DeviceQuantities
    from fairlap.scenarios.held import Held


_OF_RANKS = "ranks take equally many steps, and what times the device chooses how many by itself"


def serve(held: Held, request: Measure) -> tuple[Measured, list[memoryview]]:
    held.require_unprofiled()
    contestant, timed, fed = held.contestant, held.timed, held.fed
    drawn: Drawn = Drawn()
    dealt = request.deal is not None and fed is None and _deal(held, request.deal)
    conditions = None if request.on_device is None else timed.conditions(request.on_device)
    if conditions is not None:
        request = timed.settle(request, conditions)

    def take() -> Measurement:
        nonlocal drawn
        if fed is not None:
            return fed.measure(request)
        measurement, drawn = timed.measure(request, conditions)
        return measurement

    held.memory.before_running(contestant)
    metered = request.energy_of or held.settings.device
    measurement, energy = with_energy(take, metered) if request.energy else (take(), None)
    held.memory.ran(contestant)
    if measurement.interrupted:
        raise KeyboardInterrupt
    on_device = None
    if contestant.device is not None and held.settings.rank is not None:
        on_device = _not_of_ranks()
    elif contestant.device is not None and fed is None:
        on_device = timed.measure_device(request, measurement.calls_per_sample, conditions)
    if fed is not None:
        fed.time_copies()
    feeding = None if fed is None else fed.feeding
    in_force: Mapping[str, str] = {}
    if conditions is not None:
        in_force = conditions.in_force
        measurement = replace(measurement, warnings=(*measurement.warnings, *conditions.notices))
    return measured_message(measurement, drawn, energy, feeding, on_device, dealt=dealt, device_conditions=in_force)


def _not_of_ranks() -> DeviceQuantities:
    """Leave out what would make each rank take another number of steps, so that it waits for the others for ever."""
    from fairlap.scenarios.device_quantities import METHODS, DeviceQuantities

    return DeviceQuantities(absent={f"{method}_ns": _OF_RANKS for method in METHODS})


def _deal(held: Held, seed: int) -> bool:
    """Move it to other places; what it holds is held twice meanwhile, so the memory is read before."""
    held.before_second()
    return held.timed.deal(seed)


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
        meter.sm_mhz_by_sensor,
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
