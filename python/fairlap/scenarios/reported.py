"""The time that a called program reports of its own work, as the quantity that its contestant is ranked by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.frameworks.contract import OwnTimes

REPORTED_TIME = "reported_ns"
_RESOLUTION_NS = 0.0  # the program's own, which no report has


def with_reported(measurement: Measurement, own_times: OwnTimes) -> Measurement:
    """Make what the program reported in each timed call the measurement's headline."""
    from fairlap.engine import Quantity

    shape = measurement.samples, measurement.calls_per_sample
    times_ns = np.reshape(own_times.newest_ns(shape[0] * shape[1]), shape).mean(axis=1)
    reported = Quantity(REPORTED_TIME, own_times.method, np.ascontiguousarray(times_ns).data, _RESOLUTION_NS, {})
    return replace(measurement, quantities={REPORTED_TIME: reported, **measurement.quantities})
