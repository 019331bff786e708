"""A measurement of the engine as the message that carries it, and the raw samples behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fairlap.worker.protocol import BYTES_OF_A_SAMPLE, Measured, MeasuredQuantity, Notice, WarmUp

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.meters.energy_readings import EnergyOfBlock


def measured_message(
    measured: Measurement, energy: EnergyOfBlock | None = None, feeding: dict[str, float] | None = None
) -> tuple[Measured, list[memoryview]]:
    quantities = [
        MeasuredQuantity(
            name=name,
            count=len(quantity),
            method=quantity.method,
            resolution_ns=quantity.resolution_ns,
            floor={key: _finite(value) for key, value in quantity.floor.items()},
        )
        for name, quantity in measured.quantities.items()
    ]
    raw = [np.asarray(quantity.values, dtype="<f8").data.cast("B") for quantity in measured.quantities.values()]
    warm_up = measured.warm_up
    message = Measured(
        quantities=quantities,
        calls_per_sample=measured.calls_per_sample,
        stopped_by=measured.stopped_by,
        elapsed_s=measured.elapsed_s,
        bytes=BYTES_OF_A_SAMPLE * sum(quantity.count for quantity in quantities),
        warm_up=WarmUp(warm_up.kind, warm_up.settled, warm_up.calls, warm_up.elapsed_s, _finite(warm_up.first_call_ns)),
        counts=dict(measured.counts),
        groups=_columns(measured),
        warnings=[Notice(notice.code, notice.text) for notice in measured.warnings],
        energy=energy,
        feeding=feeding or {},
    )
    return message, raw


def _columns(measured: Measurement) -> dict[str, list[int]]:
    if measured.group_table is None:
        return {}
    return {name: measured.groups[name].tolist() for name in measured.groups.dtype.names or ()}


def _finite(value: float) -> float | None:
    """JSON has no word for what is not a number."""
    return value if math.isfinite(value) else None
