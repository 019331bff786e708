"""What the machine's sensors read while something runs: power, energy, memory, clocks, what held it back.

A native thread reads them; Python is asked only for marks, and for what was read once it is over.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING

from fairlap.engine import _native
from fairlap.engine.arguments import number_of, path_text, period_s, whole_number
from fairlap.engine.clocks import clock_named
from fairlap.engine.sampling.joules import Energy
from fairlap.errors import InvalidRequest, NotAvailable, shown

if TYPE_CHECKING:
    from fairlap.engine.sampling.field_calibration import FieldCalibration

_FAST_PERIOD_S = 0.05  # half of what sensors of devices mostly publish at: each value is seen
_MOST_ROOM = 2**24  # of readings, and of marks, as the engine has it
_MOST_NS = 2**62


class Sampler:
    """Samples every source that this machine has, from entry to exit of a ``with`` block.

    Power is read every ``fast_period_s`` (50 ms, or what ``calibration`` finds), or less often where its calls would
    take more than ``call_share`` of wall time; counters, clocks and memory every ``slow_period_s``; what is dear or
    hardly moves every ``rare_period_s`` (a second, unless the slow period is longer). ``nvml_library`` names another
    library than the driver's own, and ``root`` a folder to prepend to ``/proc`` and ``/sys``.
    """

    def __init__(
        self,
        *,
        fast_period_s: float | None = None,
        slow_period_s: float = 0.1,
        rare_period_s: float | None = None,
        call_share: float = 0.005,
        clock: str = "auto",
        seed: int = 1,
        readings: int = 32_768,
        marks: int = 4_096,
        root: str | os.PathLike[str] = "",
        nvml_library: str | os.PathLike[str] = "",
    ) -> None:
        # What was not given follows from the slow period, so that one is looked at first.
        slow_s = period_s("slow_period_s", slow_period_s)
        fast_s = min(_FAST_PERIOD_S, slow_s) if fast_period_s is None else period_s("fast_period_s", fast_period_s)
        rare_s = max(1.0, slow_s) if rare_period_s is None else period_s("rare_period_s", rare_period_s)
        if fast_s > slow_s:
            raise InvalidRequest(f"fast_period_s ({fast_s:g}) must be no longer than slow_period_s ({slow_s:g})")
        if slow_s > rare_s:
            raise InvalidRequest(f"slow_period_s ({slow_s:g}) must be no longer than rare_period_s ({rare_s:g})")
        if not 0.0 < number_of("call_share", call_share) <= 1.0:
            raise InvalidRequest(f"call_share must be above 0 and at most 1, which is all the time, not {call_share!r}")
        readings = whole_number("readings", readings, least=1, most=_MOST_ROOM)
        try:
            self._native = _native.Sampler(
                clock_named(clock),
                fast_period_s=fast_s,
                slow_period_s=slow_s,
                rare_period_s=rare_s,
                most_call_share=call_share,
                jitter_share=0.1,
                seed=whole_number("seed", seed, least=0, most=2**64 - 1),
                readings=readings,
                marks=whole_number("marks", marks, least=1, most=_MOST_ROOM),
                root=path_text("root", root),
                nvml_library=path_text("nvml_library", nvml_library),
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        except MemoryError:
            raise NotAvailable(f"there is not enough memory for {readings} readings of 48 bytes each") from None
        self._adapts = fast_period_s is None
        self._mark = self._native.mark  # bound once: it is called inside what is measured

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        try:
            self._native.start()
        except _native.ForkedSampler as error:
            raise NotAvailable(str(error)) from None

    def stop(self) -> None:
        self._native.stop()

    def mark(self, label: int) -> int:
        """Take the time now and keep it with the label, without blocking or waiting for a device."""
        try:
            return self._mark(label)
        except TypeError:
            raise InvalidRequest(f"label must be a whole number from 0 to 2**64 - 1, not {shown(label)}") from None

    @property
    def running(self) -> bool:
        """Never in a forked child, whose parent kept the thread."""
        return self._native.running

    @property
    def sources(self) -> list[_native.TelemetrySource]:
        """All that were looked for; an absent one, or an absent field of one, tells why."""
        return self._native.sources

    @property
    def counts(self) -> dict[str, int]:
        """Rounds, missed deadlines, what did not fit or was held back, and what the thread itself has used."""
        return self._native.counts()

    @property
    def fast_period_s(self) -> float:
        """From one round to the next; longer than was wished when this machine has nothing in the fast lane."""
        return self._native.period_s

    def calibration(self, seconds: float = 1.0) -> list[FieldCalibration]:
        """Read every field alone, over and over for so long, and tell what each costs and how often it is new.

        For a sampler that does not run yet, since two threads must not read one source. Without a ``fast_period_s``
        of its own the sampler then reads power four times in each period that was seen. ``calibration_table``
        makes the answer readable.
        """
        from fairlap.engine.sampling import field_calibration  # here, since sampling alone needs no NumPy

        length_s = period_s("seconds", seconds)
        try:
            readings = self._native.read_each_alone(length_s)
            found = field_calibration.field_calibrations(self.sources, readings)
            fast_s = field_calibration.fast_period_for(found)
            if self._adapts and fast_s is not None:
                self._native.set_fast_period(fast_s)
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        except (_native.ForkedSampler, _native.SamplerRuns) as error:
            raise NotAvailable(str(error)) from None
        return found

    def collect(self) -> _native.Readings:
        """Take what was read since the last call; ``numpy.asarray`` makes it a structured array without a copy."""
        try:
            return self._native.collect()
        except _native.ForkedSampler as error:
            raise NotAvailable(str(error)) from None

    def collect_marks(self) -> list[tuple[int, int]]:
        """Time and label of each mark since the last call."""
        try:
            return self._native.collect_marks()
        except _native.ForkedSampler as error:
            raise NotAvailable(str(error)) from None

    def text_of(self, source: int, code: int) -> str:
        """Explain the code of a failed reading."""
        if not 0 <= whole_number("source", source, least=-(2**63), most=2**63 - 1) < len(self.sources):
            raise InvalidRequest(f"there is no source number {source}")
        return self._native.text_of(source, whole_number("code", code, least=-(2**31), most=2**31 - 1))

    def energy(
        self,
        readings: _native.Readings,
        source: str,
        field: str,
        begin_ns: int,
        end_ns: int,
        *,
        gain_share: float = 0.0,
        stale_ns: int = 0,
        period_ns: int = 0,
        window_ns: int = 0,
    ) -> Energy:
        """Of the stretch between two marks, from a field in watts (integral) or in joules (difference).

        ``gain_share`` and ``stale_ns`` give how wrong the power sensor may be and how old its values; they widen
        the interval. With ``period_ns`` and ``window_ns``, how often it publishes and how long it looks before, a
        region that it may have missed is unresolved.
        """
        from fairlap.engine.sampling import region_energy  # here, since sampling alone needs no NumPy

        source_number, field_number, found = self.number_of(source, field)
        check_readings(readings)
        begin_ns, end_ns, stale_ns, period_ns, window_ns = (
            whole_number(name, value, least=-_MOST_NS, most=_MOST_NS)
            for name, value in (
                ("begin_ns", begin_ns),
                ("end_ns", end_ns),
                ("stale_ns", stale_ns),
                ("period_ns", period_ns),
                ("window_ns", window_ns),
            )
        )
        require_in_order(begin_ns, end_ns)
        gain_share = number_of("gain_share", gain_share)
        rows = region_energy.rows_of(readings, source_number, field_number)
        if found.counter:
            return region_energy.energy_of_counter(rows, begin_ns, end_ns, found.wraps_at)
        return region_energy.energy_of_power(
            rows, begin_ns, end_ns, gain_share=gain_share, stale_ns=stale_ns, period_ns=period_ns, window_ns=window_ns
        )

    def number_of(self, source: str, field: str) -> tuple[int, int, _native.TelemetryField]:
        """Find the numbers by which readings refer to a field of power or energy, and the field itself."""
        for source_number, each in enumerate(self.sources):
            if each.name != source:
                continue
            for field_number, candidate in enumerate(each.fields):
                if candidate.name != field:
                    continue
                if not field.endswith(("_w", "_j")):
                    raise InvalidRequest(f"{field} of {source} is neither power nor energy")
                if candidate.absent_because:
                    raise NotAvailable(f"{field} of {source} is absent: {candidate.absent_because}")
                return source_number, field_number, candidate
            if each.absent_because:
                raise NotAvailable(f"{source} is absent: {each.absent_because}")
            raise InvalidRequest(f"{source} has no field {field}; it has {', '.join(f.name for f in each.fields)}")
        for each in self.sources:
            if each.absent_because and source.startswith(f"{each.name}:"):  # a device of what is absent as a whole
                raise NotAvailable(f"{source} is absent: {each.absent_because}")
        raise InvalidRequest(f"there is no source {source}; there are {', '.join(each.name for each in self.sources)}")


def require_in_order(begin_ns: int, end_ns: int) -> None:
    if end_ns < begin_ns:
        raise InvalidRequest(
            f"the region ends before it begins: end_ns, {end_ns}, is earlier than begin_ns, {begin_ns}; swap them"
        )


def check_readings(readings: object) -> None:
    if not isinstance(readings, _native.Readings):
        raise InvalidRequest(f"readings must be what a sampler collected, not {shown(readings)}")
