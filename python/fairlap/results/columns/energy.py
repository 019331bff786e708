"""The columns of a row about energy. Their intervals include what the sensors leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.meters.energy import EnergyRead, IdlePower
from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult

_Part = tuple[float | None, float | None, float | None, str]  # value, low, high, why there is no value
_NOT_READ = "no source of power was read"


@dataclass(frozen=True)
class Span:
    """A figure of one process, all sensors added up. Its value is absent where one sensor's is."""

    value: float | None
    low: float | None
    high: float | None
    why: str = ""

    def times(self, factor: float) -> Span:
        value, low, high = (None if each is None else each * factor for each in (self.value, self.low, self.high))
        return Span(value, low, high, self.why)


_OF_ENERGY = ("energy_per_item_j", "idle_energy_per_item_j", "mean_power_w", "peak_power_w", "idle_power_w")
_OTHER_HOSTS = "its ranks run on other hosts, and the sensors of this machine do not see those"


def energy_of(result: ContestantResult, work: Work) -> dict[str, Cell]:
    if work.scale is not None and work.scale.hosts:
        return dict.fromkeys(_OF_ENERGY, Cell(None, _OTHER_HOSTS))
    processes = result.finished
    return {
        "energy_per_item_j": over_processes(
            result, [_per_item(process, work, _energy(process)) for process in processes], "J"
        ),
        "idle_energy_per_item_j": over_processes(
            result, [_per_item(process, work, _idle_energy(process)) for process in processes], "J"
        ),
        "mean_power_w": over_processes(result, [_per_second(process) for process in processes], "W"),
        "peak_power_w": over_processes(result, [_peak(process) for process in processes], "W"),
        "idle_power_w": over_processes(result, [_idle(process) for process in processes], "W"),
    }


def energy_until(process: ProcessResult, epochs: int) -> Span:
    """Add up the energy of the steps of so many epochs of training, of all sensors.

    An epoch may be too short for a sensor to resolve, and all of them together not: where only its bounds are known,
    its middle counts, as long as the bounds of the whole are nearer to each other than to 0.
    """
    learnt = [] if process.learning is None else process.learning.evaluations[:epochs]
    if not learnt or not all(each.energy for each in learnt):
        return Span(None, None, None, process.energy_absent or _NOT_READ)
    read = [one for each in learnt for part in each.energy for one in part.read]
    found = _sum([(_middle(one), one.low_j, one.high_j, _unresolved(one, alone=False)) for one in read])
    short = next((one for one in read if one.joules is None), None)
    if found.value is None or short is None or found.low is None or found.high is None:
        return found
    if found.high - found.low <= found.low:
        return found
    return Span(None, found.low, found.high, _unresolved(short, alone=len({one.sensor for one in read}) == 1))


def _middle(read: EnergyRead) -> float | None:
    if read.joules is not None or read.low_j is None or read.high_j is None:
        return read.joules
    return (read.low_j + read.high_j) / 2


def unresolved(spans: Sequence[Span], unit: str) -> str:
    """Why there is no figure over these processes; empty where there is one."""
    without = [span for span in spans if span.value is None]
    if not without:
        return ""
    often = "" if len(without) == len(spans) else f"in {len(without)} of {len(spans)} processes "
    return f"{often}{without[0].why}{_between(without, unit)}"


def energy_by_sensor(result: ContestantResult, work: Work) -> dict[str, float]:
    """By the rule of the sum: a sensor that one process did not resolve has no figure."""
    if work.scale is not None and work.scale.hosts:
        return {}
    processes = result.finished
    sensors = dict.fromkeys(
        each.sensor for process in processes if process.energy is not None for each in process.energy.read
    )
    found = {
        name: over_processes(result, [_per_item(process, work, _energy(process, name)) for process in processes], "J")
        for name in sensors
    }
    return {name: cell.value.value for name, cell in sorted(found.items()) if cell.value is not None}


def over_processes(result: ContestantResult, spans: Sequence[Span], unit: str) -> Cell:
    """Combine spans over processes: from the low end of the lowest to the high end of the highest.

    With six or more processes it is from the low end of their low ends' interval to the high end of their high ends'.
    """
    if not spans:
        return Cell(None, absence_reason(result))
    if why := unresolved(spans, unit):
        return Cell(None, why)
    values, lows, highs = ([getattr(span, end) for span in spans] for end in ("value", "low", "high"))
    middle, low, high = (_estimate(result.finished, each) for each in (values, lows, highs))
    assert middle is not None
    if low is None or high is None:
        return Cell(Estimate(middle.value))
    least = low.low if low.low is not None else min(lows)
    most = high.high if high.high is not None else max(highs)
    return Cell(Estimate(middle.value, min(least, middle.value), max(most, middle.value)))


def _estimate(processes: Sequence[ProcessResult], values: Sequence[float | None]) -> Estimate | None:
    by_process = {id(process): value for process, value in zip(processes, values, strict=True)}
    return estimate(processes, lambda process: by_process[id(process)])


def _between(spans: Sequence[Span], unit: str) -> str:
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    if not lows or not highs:
        return ""
    return f"; it is between {quantity_text.number(min(lows))} and {quantity_text.number(max(highs))} {unit}"


def _energy(process: ProcessResult, sensor: str = "") -> Span:
    """By one sensor, or by all together."""
    if process.energy is None:
        return Span(None, None, None, process.energy_absent or _NOT_READ)
    read = [each for each in process.energy.read if sensor in ("", each.sensor)]
    return _sum([(each.joules, each.low_j, each.high_j, _unresolved(each, alone=len(read) == 1)) for each in read])


def _idle(process: ProcessResult) -> Span:
    if not process.idle_power:
        return Span(None, None, None, process.energy_absent or _NOT_READ)
    return _sum(
        [
            (each.watts, each.low_w, each.high_w, _unresolved(each, alone=len(process.idle_power) == 1))
            for each in process.idle_power
        ]
    )


def _unresolved(read: EnergyRead | IdlePower, *, alone: bool) -> str:
    return f"unresolved: {read.why}" if alone else f"unresolved by {read.sensor}: {read.why}"


def _idle_energy(process: ProcessResult) -> Span:
    seconds = process.energy.seconds if process.energy is not None else 0.0
    return _idle(process).times(seconds) if seconds else Span(None, None, None, process.energy_absent or _NOT_READ)


def _per_item(process: ProcessResult, work: Work, joules: Span) -> Span:
    return joules if process.energy is None else joules.times(1 / (process.energy.calls * work.batch))


def _per_second(process: ProcessResult) -> Span:
    return _energy(process) if process.energy is None else _energy(process).times(1 / process.energy.seconds)


def _peak(process: ProcessResult) -> Span:
    if process.energy is None or not process.energy.read:
        return Span(None, None, None, process.energy_absent or _NOT_READ)
    lacking = next((each.sensor for each in process.energy.read if each.peak_w is None), "")
    why = f"{lacking} was read too seldom while it was measured" if lacking else ""
    return Span(_added([each.peak_w for each in process.energy.read]), None, None, why)


def _sum(parts: Sequence[_Part]) -> Span:
    why = next((why for value, _, _, why in parts if value is None), "")
    value = _added([value for value, _, _, _ in parts])
    return Span(value, _added([low for _, low, _, _ in parts]), _added([high for _, _, high, _ in parts]), why)


def _added(values: Sequence[float | None]) -> float | None:
    """Absent where one is."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
