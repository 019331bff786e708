"""The native sampler around one region: started before, stopped after, asked for joules when all is over.

``FAIRLAP_SENSOR_ROOT`` names a folder that stands before ``/proc`` and ``/sys``, ``FAIRLAP_LIBNVML`` another library
than the driver's: sensors of one's own, and those of tests.

The power of the machine while nothing runs yet, measured by the parent before the first block.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlap.engine.telemetry import Energy, Sampler
from fairlap.meters.energy_readings import EnergyRead, IdlePower
from fairlap.meters.energy_sensors import sensors_for

if TYPE_CHECKING:
    from fairlap.engine._native import Readings


ROOT = "FAIRLAP_SENSOR_ROOT"
_NO_LIBRARY = "/dev/null"  # work on a processor starts no driver of a GPU
_FAST_PERIOD_S = 0.025
_SLOW_PERIOD_S = 0.1
_SLOW_PERIOD_ON_CPU_S = 1.0  # what it reads then is not asked for
_SETTLED_AFTER_S = 0.075  # three readings: a counter's step before the region, and one after it
_BOARD_SETTLED_AFTER_S = 0.25  # a board's counter steps every tenth of a second

# Of NVIDIA's boards: the gain of their sensors, and how old a published value may be: its period and its window.
_BOARD_GAIN_SHARE = 0.05
_BOARD_STALE_NS = 125_000_000


class Meter:
    """``sensors`` is empty where there is nothing to read, and ``absent`` says why; then no thread runs."""

    def __init__(self, device: str, clock: str = "auto") -> None:
        on_cpu = device == "cpu"
        self._sampler = Sampler(
            fast_period_s=_FAST_PERIOD_S,
            slow_period_s=_SLOW_PERIOD_ON_CPU_S if on_cpu else _SLOW_PERIOD_S,
            clock=clock,
            root=os.environ.get(ROOT, ""),
            nvml_library=_NO_LIBRARY if on_cpu else "",
        )
        self.sensors, self.absent = sensors_for(device, self._sampler.sources, os.environ)
        boards = any(sensor.source.startswith("nvml") for sensor in self.sensors)
        self._settled_after_s = _BOARD_SETTLED_AFTER_S if boards else _SETTLED_AFTER_S

    def begin(self) -> int:
        """The time on the sampler's clock; readings are there by then."""
        self._sampler.start()
        time.sleep(self._settled_after_s)
        return self._sampler.mark(0)

    def end(self) -> int:
        """Of the region; what is read on for a moment bounds it."""
        end_ns = self._sampler.mark(1)
        time.sleep(self._settled_after_s)
        self._sampler.stop()
        return end_ns

    def read(self, begin_ns: int, end_ns: int) -> list[EnergyRead]:
        return self._read(self._sampler.collect(), begin_ns, end_ns)

    def _read(self, readings: Readings, begin_ns: int, end_ns: int) -> list[EnergyRead]:
        return [
            _joined(
                sensor.name,
                [self._energy(readings, sensor.source, field, begin_ns, end_ns) for field in sensor.fields],
            )
            for sensor in self.sensors
        ]

    def read_somewhere_in(self, begin_ns: int, end_ns: int, length_ns: int) -> list[EnergyRead]:
        """Of a region of which only the length is known, and what it lies in: taken in the middle of where it may lie,
        with an interval that holds it first and last."""
        readings = self._sampler.collect()
        first_ns, last_ns = begin_ns, max(begin_ns, end_ns - length_ns)
        told = [
            self._read(readings, at_ns, at_ns + length_ns) for at_ns in ((first_ns + last_ns) // 2, first_ns, last_ns)
        ]
        return [_widened(*each) for each in zip(*told, strict=True)]

    def _energy(self, readings: Readings, source: str, field: str, begin_ns: int, end_ns: int) -> Energy:
        """What is known of the sensor widens the interval; a counter's own steps bound it as they are."""
        is_power = field.endswith("_w")
        return self._sampler.energy(
            readings,
            source,
            field,
            begin_ns,
            end_ns,
            gain_share=_BOARD_GAIN_SHARE if is_power else 0.0,
            stale_ns=_BOARD_STALE_NS if is_power else 0,
        )


def _joined(sensor: str, told: Sequence[Energy]) -> EnergyRead:
    """Where power and counter are both resolved, the interval holds both of theirs: they check each other."""
    resolved = [each for each in told if each.joules is not None and each.joules > 0]
    if not resolved:
        first = told[0]
        why = first.unresolved_because or "the sensor says that nothing was drawn"
        return EnergyRead(sensor, None, first.low_j, first.high_j, why)
    lows = [each.low_j for each in resolved if each.low_j is not None]
    highs = [each.high_j for each in resolved if each.high_j is not None]
    return EnergyRead(sensor, resolved[0].joules, min(lows, default=None), max(highs, default=None))


def _widened(middle: EnergyRead, *others: EnergyRead) -> EnergyRead:
    lows = [each.low_j for each in (middle, *others) if each.low_j is not None]
    highs = [each.high_j for each in (middle, *others) if each.high_j is not None]
    return EnergyRead(middle.sensor, middle.joules, min(lows, default=None), max(highs, default=None), middle.why)


_IDLE_S = 1.0


@dataclass(frozen=True)
class Sensed:
    """By sensor; empty where there is none, and then ``absent`` says why."""

    idle: tuple[IdlePower, ...] = ()
    absent: str = ""


def idle_power(device: str, tell: Callable[[str], None]) -> Sensed:

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
