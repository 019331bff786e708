"""The times of a called program's runs besides wall time: the one that it reports, which ranks it, and CPU time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairlap.frameworks.contract_parts.called_programs import OwnValues
from fairlap.request.names import REPORTED_VALUE

if TYPE_CHECKING:
    from fairlap.engine import Measurement, Quantity
    from fairlap.frameworks.contract_parts.called_programs import OwnTimes

REPORTED_TIME = "reported_ns"
CPU_TIME = "cpu_time_ns"
_REPORTED_RESOLUTION_NS = 0.0  # the program's own, which no report has
_CPU_RESOLUTION_NS = 1e3  # of the kernel's report


def with_reported(measurement: Measurement, own_times: OwnTimes) -> Measurement:
    """Make what the program reported in each timed call the measurement's headline."""
    name = REPORTED_VALUE if isinstance(own_times, OwnValues) else REPORTED_TIME
    reported = {name: _quantity(name, measurement, own_times, _REPORTED_RESOLUTION_NS)}
    return replace(measurement, quantities={**reported, **measurement.quantities})


def with_cpu_time(measurement: Measurement, cpu_times: OwnTimes) -> Measurement:
    """Add the CPU time of the processes that each timed call started, after the other quantities."""
    used = {CPU_TIME: _quantity(CPU_TIME, measurement, cpu_times, _CPU_RESOLUTION_NS)}
    return replace(measurement, quantities={**measurement.quantities, **used})


def _quantity(name: str, measurement: Measurement, own_times: OwnTimes, resolution_ns: float) -> Quantity:
    from fairlap.engine import Quantity

    shape = measurement.samples, measurement.calls_per_sample
    times_ns = np.reshape(own_times.newest_ns(shape[0] * shape[1]), shape).mean(axis=1)
    return Quantity(name, own_times.method, np.ascontiguousarray(times_ns).data, resolution_ns, {})
