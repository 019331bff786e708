"""The columns of a row that tell of energy. Their intervals hold what the sensors leave open, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.ledger.estimates import Told, estimate, why_not
from fairlap.ledger.schema import Estimate
from fairlap.race.energy_read import EnergyRead, IdlePower
from fairlap.race.laps import Lap
from fairlap.race.plan import Work
from fairlap.race.results import Contender

_Told = tuple[float | None, float | None, float | None, str]  # value, low, high, why there is no value
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


def energy_of(contender: Contender, work: Work) -> dict[str, Told]:
    laps = contender.finished
    return {
        "energy_per_item_j": _over(contender, [_per_item(lap, work, _energy(lap)) for lap in laps], "J"),
        "idle_energy_per_item_j": _over(contender, [_per_item(lap, work, _idle_energy(lap)) for lap in laps], "J"),
        "mean_power_w": _over(contender, [_per_second(lap) for lap in laps], "W"),
        "idle_power_w": _over(contender, [_idle(lap) for lap in laps], "W"),
    }


def energy_by_sensor(contender: Contender, work: Work) -> dict[str, float]:
    """By the rule of the sum: a sensor that one process did not resolve has no figure."""
    laps = contender.finished
    sensors = dict.fromkeys(each.sensor for lap in laps if lap.energy is not None for each in lap.energy.read)
    found = {
        name: _over(contender, [_per_item(lap, work, _energy(lap, name)) for lap in laps], "J") for name in sensors
    }
    return {name: told.value.value for name, told in sorted(found.items()) if told.value is not None}


def _over(contender: Contender, spans: Sequence[Span], unit: str) -> Told:
    """Over processes: from the low end of the lowest to the high end of the highest, and with six or more processes
    from the low end of their low ends' interval to the high end of their high ends'."""
    if not spans:
        return Told(None, why_not(contender))
    unresolved = [span for span in spans if span.value is None]
    if unresolved:
        often = "" if len(unresolved) == len(spans) else f"in {len(unresolved)} of {len(spans)} processes "
        return Told(None, f"{often}{unresolved[0].why}{_between(unresolved, unit)}")
    values, lows, highs = ([getattr(span, end) for span in spans] for end in ("value", "low", "high"))
    middle, low, high = (_estimate(contender.finished, each) for each in (values, lows, highs))
    assert middle is not None
    if low is None or high is None:
        return Told(Estimate(middle.value))
    least = low.low if low.low is not None else min(lows)
    most = high.high if high.high is not None else max(highs)
    return Told(Estimate(middle.value, min(least, middle.value), max(most, middle.value)))


def _estimate(laps: Sequence[Lap], values: Sequence[float | None]) -> Estimate | None:
    by_lap = {id(lap): value for lap, value in zip(laps, values, strict=True)}
    return estimate(laps, lambda lap: by_lap[id(lap)])


def _between(unresolved: Sequence[Span], unit: str) -> str:
    lows = [span.low for span in unresolved if span.low is not None]
    highs = [span.high for span in unresolved if span.high is not None]
    if not lows or not highs:
        return ""
    return f"; it lies between {min(lows):.3g} and {max(highs):.3g} {unit}"


def _energy(lap: Lap, sensor: str = "") -> Span:
    """By one sensor, or by all together."""
    if lap.energy is None:
        return Span(None, None, None, lap.energy_absent or _NOT_READ)
    read = [each for each in lap.energy.read if sensor in ("", each.sensor)]
    return _sum([(each.joules, each.low_j, each.high_j, _unresolved(each, alone=len(read) == 1)) for each in read])


def _idle(lap: Lap) -> Span:
    if not lap.idle_power:
        return Span(None, None, None, lap.energy_absent or _NOT_READ)
    return _sum(
        [
            (each.watts, each.low_w, each.high_w, _unresolved(each, alone=len(lap.idle_power) == 1))
            for each in lap.idle_power
        ]
    )


def _unresolved(read: EnergyRead | IdlePower, *, alone: bool) -> str:
    return f"unresolved: {read.why}" if alone else f"unresolved by {read.sensor}: {read.why}"


def _idle_energy(lap: Lap) -> Span:
    seconds = lap.energy.seconds if lap.energy is not None else 0.0
    return _idle(lap).times(seconds) if seconds else Span(None, None, None, lap.energy_absent or _NOT_READ)


def _per_item(lap: Lap, work: Work, joules: Span) -> Span:
    return joules if lap.energy is None else joules.times(1 / (lap.energy.calls * work.batch))


def _per_second(lap: Lap) -> Span:
    return _energy(lap) if lap.energy is None else _energy(lap).times(1 / lap.energy.seconds)


def _sum(told: Sequence[_Told]) -> Span:
    why = next((why for value, _, _, why in told if value is None), "")
    value = _added([value for value, _, _, _ in told])
    return Span(value, _added([low for _, low, _, _ in told]), _added([high for _, _, high, _ in told]), why)


def _added(values: Sequence[float | None]) -> float | None:
    """Absent where one is."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
