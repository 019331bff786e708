"""The energy and the peak power of one region, from the native sampler, and the power of the idle machine.

``FAIRLAP_SENSOR_ROOT`` names a folder to use in place of ``/``, ``FAIRLAP_LIBNVML`` a library to use in place of the
driver's: for other sensors, and for tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap.machine.hardware.cuda_devices import board_of, each_device
from fairlap.machine.hardware.gpu import SLOWED_BY_HEAT, SLOWED_BY_POWER
from fairlap.meters.counter_at_ends import CounterAtEnds
from fairlap.meters.energy_sensors import Sensor, sensors_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fairlap.engine._native import Readings
    from fairlap.engine.sampling.joules import Energy

ROOT = "FAIRLAP_SENSOR_ROOT"
_NO_LIBRARY = "/dev/null"  # work on a processor does not start the driver of a GPU
_FAST_PERIOD_S = 0.025
_SLOW_PERIOD_S = 0.1
_SLOW_PERIOD_ON_CPU_S = 1.0  # its readings are not used then
_SETTLED_AFTER_S = 0.075  # three readings: a counter must step once before the region, and once after it
_BOARD_SETTLED_AFTER_S = 0.25  # a board's counter steps every tenth of a second

# Of NVIDIA's boards: the gain error of their sensors, how often they publish, and how long they look before. On A100
# and H100 that is a quarter of the time (arXiv 2312.02741); an H100 with driver 580 published every 100 ms.
_BOARD_GAIN_SHARE = 0.05
_BOARD_PERIOD_NS = 100_000_000
_BOARD_WINDOW_NS = 25_000_000
_COUNTER = "energy_j"
_OF_A_COUNTER = 2  # the label of marks around its readings
_BUSY = "utilisation_percent"
_CLOCK = "sm_clock_mhz"
_REASONS = "throttle_reasons_bits"
_SHORTEST_STEP_NS = 50_000_000  # counters step in milliseconds: over less, a step is mostly rounding


class EnergyRead(msgspec.Struct, frozen=True):
    """Of one sensor over one region. Without joules, which are never 0 then, it may still have an interval."""

    sensor: str  # such as "nvml:0", "powercap intel-rapl:0 package-0"
    joules: float | None
    low_j: float | None
    high_j: float | None
    why: str = ""  # there are no joules
    peak_w: float | None = None  # while it was measured; None with too few readings


class EnergyOfBlock(msgspec.Struct, frozen=True):
    """Of one process's timed calls, from the first to the last."""

    seconds: float
    calls: int
    read: list[EnergyRead]
    # Of a GPU, by NVML's samples; of several the mean, the most and, in place of the one clock, each by its sensor.
    device_busy_share: float | None = None  # how much of the time a kernel was running
    device_slowed_share: float | None = None  # in how many samples temperature or power slowed it down
    device_sm_mhz: float | None = None  # its mean clock
    sm_mhz_by_sensor: dict[str, float] = {}


class IdlePower(msgspec.Struct, frozen=True):
    """Of the machine before the first block of a race, by one sensor."""

    sensor: str
    watts: float | None
    low_w: float | None
    high_w: float | None
    why: str = ""


class EnergyMeter:
    """Of one device, or of several ("cuda:0,cuda:1").

    ``sensors`` is empty where nothing can be read, and ``absent`` is the reason; then no thread runs.
    """

    def __init__(self, device: str, clock: str = "auto") -> None:
        from fairlap.engine.sampling.telemetry import Sampler  # here, so that the messages above need no native module

        on_cpu = device == "cpu"
        self._sampler = Sampler(
            fast_period_s=_FAST_PERIOD_S,
            slow_period_s=_SLOW_PERIOD_ON_CPU_S if on_cpu else _SLOW_PERIOD_S,
            clock=clock,
            root=os.environ.get(ROOT, ""),
            nvml_library=_NO_LIBRARY if on_cpu else "",
        )
        its_boards = () if on_cpu else tuple(map(board_of, each_device(device)))
        self.sensors, self.absent = sensors_for(device, self._sampler.sources, *its_boards)
        self.device_busy_share: float | None = None  # of the region that was read last
        self.device_slowed_share: float | None = None
        self.device_sm_mhz: float | None = None
        self.sm_mhz_by_sensor: dict[str, float] = {}
        boards = any(sensor.source.startswith("nvml") for sensor in self.sensors)
        self._settled_after_s = _BOARD_SETTLED_AFTER_S if boards else _SETTLED_AFTER_S
        self._at_ends = self._expensive_counters()
        self._whole_ns = (0, 0)  # the region

    def begin(self) -> int:
        """Start sampling, and return the time on the sampler's clock after the first readings."""
        self._sampler.start()
        time.sleep(self._settled_after_s)
        for counter in self._at_ends.values():
            counter.before()
        return self._sampler.mark(0)

    def end(self) -> int:
        """Return the time at the end of the region, and sample for a moment longer to bound it."""
        end_ns = self._sampler.mark(1)
        for counter in self._at_ends.values():
            counter.after()
        time.sleep(self._settled_after_s)
        self._sampler.stop()
        return end_ns

    def _expensive_counters(self) -> dict[str, CounterAtEnds]:
        """Make one for each board whose counter the sampler reads rarely, by its source."""
        from fairlap.engine._native import Lane

        found = {}
        for sensor in self.sensors:
            board, _, index = sensor.source.partition(":")
            if board != "nvml" or _COUNTER not in sensor.fields:
                continue
            *_, field = self._sampler.number_of(sensor.source, _COUNTER)
            if field.lane is Lane.rare:
                found[sensor.source] = CounterAtEnds(int(index), lambda: self._sampler.mark(_OF_A_COUNTER))
        return found

    def read(self, begin_ns: int, end_ns: int) -> list[EnergyRead]:
        self._whole_ns = (begin_ns, end_ns)
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
        """Read the energy of a region of known length within a longer one.

        It is that at the middle position, with an interval that covers the first and the last position.
        """
        self._whole_ns = (begin_ns, end_ns)
        readings = self._sampler.collect()
        first_ns, last_ns = begin_ns, max(begin_ns, end_ns - length_ns)
        positions = [
            self._read(readings, at_ns, at_ns + length_ns) for at_ns in ((first_ns + last_ns) // 2, first_ns, last_ns)
        ]
        self._note_device(readings, begin_ns, end_ns)
        peaks = [self._peak_w(readings, sensor, begin_ns, end_ns) for sensor in self.sensors]
        return [
            msgspec.structs.replace(_widened(*each), peak_w=peak) for *each, peak in zip(*positions, peaks, strict=True)
        ]

    def _peak_w(self, readings: Readings, sensor: Sensor, begin_ns: int, end_ns: int) -> float | None:
        """By the first of its fields that shows one; readings of power are before the slope of a counter."""
        for name in sorted(sensor.fields, key=lambda each: not each.endswith("_w")):
            source, number, field = self._sampler.number_of(sensor.source, name)
            times_ns, values = readings_of(readings, source, number, begin_ns, end_ns)
            peak = peak_power_w(times_ns, values, counter=field.counter, wraps_at=field.wraps_at)
            if peak is not None:
                return peak
        return None

    def _note_device(self, readings: Readings, begin_ns: int, end_ns: int) -> None:
        """Keep how busy a GPU was, at which clock, and how often it was slowed down."""

        def means_of(name: str, value: Callable[[npt.NDArray[np.float64]], npt.NDArray[Any]]) -> dict[str, float]:
            found = self._of_boards(readings, name, begin_ns, end_ns)
            return {sensor: float(value(values).mean()) for sensor, values in found.items()}

        busy, clocks = means_of(_BUSY, lambda percents: percents / 100), means_of(_CLOCK, lambda mhz: mhz)
        slowing = SLOWED_BY_HEAT | SLOWED_BY_POWER
        slowed = means_of(_REASONS, lambda reasons: (reasons.astype("u8") & slowing) > 0)
        self.device_busy_share = sum(busy.values()) / len(busy) if busy else None
        self.device_slowed_share = max(slowed.values(), default=None)
        self.device_sm_mhz = next(iter(clocks.values())) if len(clocks) == 1 else None
        self.sm_mhz_by_sensor = clocks if len(clocks) > 1 else {}

    def _of_boards(
        self, readings: Readings, name: str, begin_ns: int, end_ns: int
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Values of one field of each GPU whose energy is read, by sensor; none of those without any."""
        boards = {sensor.source for sensor in self.sensors if sensor.source.startswith("nvml")}
        found = {}
        for number, source in enumerate(self._sampler.sources):
            names = [field.name for field in source.fields]
            if source.name in boards and name in names:
                _, values = readings_of(readings, number, names.index(name), begin_ns, end_ns)
                if values.size:
                    found[source.name] = values
        return found

    def _energy(self, readings: Readings, source: str, field: str, begin_ns: int, end_ns: int) -> Energy:
        """Take a board's power with its period and window, and a gain that is wrong in its power and counter alike."""
        if not source.startswith("nvml"):
            return self._sampler.energy(readings, source, field, begin_ns, end_ns)
        if field == _COUNTER and source in self._at_ends:
            return _with_gain(self._at_ends[source].energy(begin_ns, end_ns, *self._whole_ns))
        if not field.endswith("_w"):
            return _with_gain(self._sampler.energy(readings, source, field, begin_ns, end_ns))
        return self._sampler.energy(
            readings,
            source,
            field,
            begin_ns,
            end_ns,
            gain_share=_BOARD_GAIN_SHARE,
            stale_ns=_BOARD_PERIOD_NS + _BOARD_WINDOW_NS,
            period_ns=_BOARD_PERIOD_NS,
            window_ns=_BOARD_WINDOW_NS,
        )


def _with_gain(counted: Energy) -> Energy:
    return replace(
        counted,
        low_j=None if counted.low_j is None else counted.low_j * (1 - _BOARD_GAIN_SHARE),
        high_j=None if counted.high_j is None else counted.high_j * (1 + _BOARD_GAIN_SHARE),
    )


def _joined(sensor: str, found: Sequence[Energy]) -> EnergyRead:
    """Take the counter first, which misses nothing; the interval covers power too, so that they check each other."""
    resolved = [each for each in found if each.joules is not None and each.joules > 0]
    if not resolved:
        reasons = "; ".join(each.unresolved_because for each in found if each.unresolved_because)
        return EnergyRead(sensor, None, found[0].low_j, found[0].high_j, reasons or "the sensor reported no energy")
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
    """By sensor; empty where there is none, and then ``absent`` is the reason."""

    idle: tuple[IdlePower, ...] = ()
    absent: str = ""


def idle_power(device: str, report: Callable[[str], None]) -> Sensed:
    meter = EnergyMeter(device, clock="monotonic_raw")  # it needs no calibration
    if not meter.sensors:
        return Sensed(absent=meter.absent)
    report(f"measuring the power of the idle machine for {_IDLE_S:g} s")
    begin_ns = meter.begin()
    time.sleep(_IDLE_S)
    end_ns = meter.end()
    seconds = (end_ns - begin_ns) / 1e9
    return Sensed(tuple(_power(each, seconds) for each in meter.read(begin_ns, end_ns)))


def _power(read: EnergyRead, seconds: float) -> IdlePower:
    watts, low_w, high_w = (None if each is None else each / seconds for each in (read.joules, read.low_j, read.high_j))
    return IdlePower(read.sensor, watts, low_w, high_w, read.why)


def readings_of(
    readings: Any, source: int, field: int, begin_ns: int, end_ns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Select times and values of one field that were read within the region, without failed readings."""
    import numpy as np

    rows = np.asarray(readings)
    chosen = (rows["source"] == source) & (rows["field"] == field) & (rows["state"] == 0)
    rows = rows[chosen & (rows["time_ns"] >= begin_ns) & (rows["time_ns"] <= end_ns)]
    return rows["time_ns"], rows["value"]


def peak_power_w(
    times_ns: npt.NDArray[np.int64], values: npt.NDArray[np.float64], *, counter: bool, wraps_at: float = 0.0
) -> float | None:
    """Find the highest reading, or a joule counter's steepest rise over at least 50 ms. None with too few."""
    if not counter:
        return float(values.max()) if values.size else None
    steepest: float | None = None
    first = 0
    for place in range(1, len(values)):
        while times_ns[place] - times_ns[first + 1] >= _SHORTEST_STEP_NS:
            first += 1
        passed_ns = int(times_ns[place] - times_ns[first])
        if passed_ns < _SHORTEST_STEP_NS:
            continue
        joules = float(values[place] - values[first])
        if joules < 0:
            joules += wraps_at
        watts = joules / (passed_ns / 1e9)
        steepest = watts if steepest is None else max(steepest, watts)
    return steepest
