"""The power of the machine while nothing runs yet, measured by the parent before the first block."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fairlap.race.energy_read import EnergyRead, IdlePower

_IDLE_S = 1.0


@dataclass(frozen=True)
class Sensed:
    """By sensor; empty where there is none, and then ``absent`` says why."""

    idle: tuple[IdlePower, ...] = ()
    absent: str = ""


def idle_power(device: str, tell: Callable[[str], None]) -> Sensed:
    from fairlap.race.energy_meter import Meter

    meter = Meter(device, clock="monotonic_raw")  # it needs no calibration
    if not meter.sensors:
        return Sensed(absent=meter.absent)
    tell(f"the power of the idle machine is measured for {_IDLE_S:g} s")
    begin_ns = meter.begin()
    time.sleep(_IDLE_S)
    end_ns = meter.end()
    seconds = (end_ns - begin_ns) / 1e9
    return Sensed(tuple(_power(each, seconds) for each in meter.read(begin_ns, end_ns)))


def _power(read: EnergyRead, seconds: float) -> IdlePower:
    watts, low_w, high_w = (None if each is None else each / seconds for each in (read.joules, read.low_j, read.high_j))
    return IdlePower(read.sensor, watts, low_w, high_w, read.why)
