"""The SM clock of a GPU at each sample on a stream, by the native sampler.

Samples that were taken while temperature or power slowed the GPU down are left out. NVML's readings alone decide which:
no time of a sample is looked at, nor whose it is.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fairlap.engine.measurement import Measurement, Notice
from fairlap.engine.quantity import Quantity
from fairlap.machine.hardware.cuda_devices import Board, board_of
from fairlap.machine.hardware.gpu import SLOWED_BY_HEAT, SLOWED_BY_POWER

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fairlap.engine.cuda.stream_measurement import StreamMeasurement
    from fairlap.engine.sampling.telemetry import Sampler

AnyMeasurement = TypeVar("AnyMeasurement", bound=Measurement)

THROTTLED = "throttled"  # why a sample is not a number
W_THROTTLED_SAMPLES = "W_THROTTLED_SAMPLES"
_CLOCK, _REASONS = "sm_clock_mhz", "throttle_reasons_bits"
_PERIOD_S = 0.02
_READINGS = 2**18  # about five minutes of all fields, until the next measurement collects them
_NO_FILES = "/nonexistent"  # the sensors of the processor are not needed


class SampleClocks:
    """For measurements of one device, from the first of them until ``close``. ``absent`` is why clocks are not known.

    A reading has no sample's exact time: each sample has the mean of the readings from the last one before it to the
    first one after it.
    """

    def __init__(self, clock: str = "auto") -> None:
        self.absent = ""
        self._clock = clock
        self._sampler: Sampler | None = None
        self._source = 0
        self._fields: dict[str, int] = {}
        self._series: dict[str, _Series] = {}

    def __enter__(self) -> SampleClocks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()

    def start(self, device: int) -> None:
        """Begin to read, unless that has begun or cannot be."""
        if self._sampler is not None or self.absent:
            return
        from fairlap.engine.sampling.telemetry import Sampler

        board = board_of(f"cuda:{device}")
        if not isinstance(board, Board) or not board.is_whole:
            self.absent = board if isinstance(board, str) else "it is an instance of a divided device"
            return
        sampler = Sampler(
            fast_period_s=_PERIOD_S, slow_period_s=_PERIOD_S, clock=self._clock, readings=_READINGS, root=_NO_FILES
        )
        numbers = {source.name: number for number, source in enumerate(sampler.sources)}
        name = f"nvml:{board.index}"
        if name not in numbers:
            self.absent = next((each.absent_because for each in sampler.sources if each.absent_because), "no device")
            return
        self._source = numbers[name]
        fields = {field.name: (number, field) for number, field in enumerate(sampler.sources[self._source].fields)}
        self._fields = {wanted: fields[wanted][0] for wanted in (_CLOCK, _REASONS)}
        self.absent = fields[_CLOCK][1].absent_because
        if not self.absent:
            self._sampler = sampler
            sampler.start()

    def start_for(self, measured: Measurement) -> None:
        """Begin to read the device of a first measurement."""
        if (device := getattr(measured, "device", None)) is not None:
            self.start(device)

    def applied(self, measured: AnyMeasurement) -> AnyMeasurement:
        """Add the clock of each sample, and leave out those during which the GPU was slowed down."""
        from fairlap.engine.cuda.stream_measurement import StreamMeasurement

        return cast("AnyMeasurement", self._applied(measured)) if isinstance(measured, StreamMeasurement) else measured

    def _applied(self, measured: StreamMeasurement) -> StreamMeasurement:
        import numpy as np

        self.start(measured.device)
        if self._sampler is None:
            return _with_setting(measured, f"not known: {self.absent}")
        self._collect(self._sampler.collect())
        clocks = self._series.get(_CLOCK)
        if clocks is None or not measured.samples:
            return _with_setting(measured, "not known: NVML gave no reading")
        begun_ns, ended_ns = _intervals(measured)
        mhz = clocks.mean(begun_ns, ended_ns)
        usual = float(np.median(mhz))
        quantities = {name: replace(each, sm_mhz=usual) for name, each in measured.quantities.items()}
        measured = _with_setting(replace(measured, quantities=quantities, sm_mhz=mhz), _range_text(mhz))
        reasons = self._series.get(_REASONS)
        return measured if reasons is None else _without(measured, reasons.mean(begun_ns, ended_ns) > 0)

    def _collect(self, readings: Any) -> None:
        """Keep the last reading of before, which may be the nearest to the first sample."""
        import numpy as np

        rows = np.asarray(readings)
        rows = rows[(rows["source"] == self._source) & (rows["state"] == 0)]
        for name, number in self._fields.items():
            own = rows[rows["field"] == number]
            values = own["value"].astype(float)
            if name == _REASONS:
                values = ((own["value"].astype("u8") & (SLOWED_BY_HEAT | SLOWED_BY_POWER)) > 0).astype(float)
            before = self._series.get(name)
            series = _Series(own["time_ns"].astype(float), values)
            if found := series if before is None else before.followed_by(series):
                self._series[name] = found


class _Series:
    """Readings of one field, in order of time."""

    def __init__(self, times_ns: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> None:
        self._times_ns, self._values = times_ns, values

    def __bool__(self) -> bool:
        return self._times_ns.size > 0

    def followed_by(self, later: _Series) -> _Series:
        """Forget all but the last reading."""
        import numpy as np

        return _Series(
            np.concatenate([self._times_ns[-1:], later._times_ns]), np.concatenate([self._values[-1:], later._values])
        )

    def mean(self, begun_ns: npt.NDArray[np.float64], ended_ns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Over each interval, with the reading before it and the one after it."""
        import numpy as np

        last = self._times_ns.size - 1
        first = np.clip(np.searchsorted(self._times_ns, begun_ns, "right") - 1, 0, last)
        after = np.clip(np.searchsorted(self._times_ns, ended_ns, "left"), first, last)
        sums = np.concatenate([[0.0], np.cumsum(self._values)])
        means: npt.NDArray[np.float64] = (sums[after + 1] - sums[first]) / (after + 1 - first)
        return means


def cycles_of(measured: Measurement) -> float | None:
    """Take the median over the samples of time by clock, in cycles of the SM.

    None where the clock is not known, and for the time of the host alone.
    """
    import numpy as np

    mhz = getattr(measured, "sm_mhz", None)
    if mhz is None or measured.headline.name == "host_issue_ns":
        return None
    cycles = measured.headline.values * mhz / 1e3
    return float(np.nanmedian(cycles)) if np.isfinite(cycles).any() else None


def all_are_throttled(measured: Measurement) -> bool:
    """Whether no sample is left because all were taken while the GPU was slowed down."""
    import numpy as np

    throttled = getattr(measured, "invalid", {}).get(THROTTLED, 0)
    return throttled > 0 and not np.isfinite(measured.headline.values).any()


def _intervals(measured: StreamMeasurement) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """From when the host began each sample to when it began the next one."""
    import numpy as np

    begun_ns = np.asarray(measured.started_ns, float)
    usual_ns = (begun_ns[-1] - begun_ns[0]) / max(1, len(begun_ns) - 1)
    return begun_ns, np.append(begun_ns[1:], begun_ns[-1] + usual_ns)


def _without(measured: StreamMeasurement, slowed: npt.NDArray[np.bool_]) -> StreamMeasurement:
    import numpy as np

    left_out = int((slowed & np.isfinite(measured.headline.values)).sum())
    if not left_out:
        return measured
    quantities: dict[str, Quantity] = {
        name: replace(each, samples=np.where(slowed, np.nan, each.values).data)
        for name, each in measured.quantities.items()
    }
    text = (
        f"{left_out:,} of {measured.samples:,} samples are left out: temperature or power slowed the GPU down when "
        "they were taken"
    )
    return replace(
        measured,
        quantities=quantities,
        invalid={**measured.invalid, THROTTLED: left_out},
        warnings=(Notice(W_THROTTLED_SAMPLES, text), *measured.warnings),
    )


def _with_setting(measured: StreamMeasurement, text: str) -> StreamMeasurement:
    return replace(measured, settings={**measured.settings, "sm_clock": text})


def _range_text(mhz: npt.NDArray[np.float64]) -> str:
    low, high = round(float(mhz.min())), round(float(mhz.max()))
    return f"{low} MHz" if low == high else f"{low} to {high} MHz"
