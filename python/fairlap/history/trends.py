"""The recorded figures of a model as series: one for each contestant on each work, conditions and machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fairlap.machine.hardware.cuda_devices import named_in
from fairlap.request.names import contestant_named
from fairlap.request.work_title import told_apart, work_title
from fairlap.results.quantities.row_quantities import TIMES
from fairlap.store.figures import RecordedFigure


@dataclass(frozen=True)
class Series:
    contestant: str  # without a version, unless two versions took part in one run
    framework: str
    points: tuple[RecordedFigure, ...]  # in the order of the runs


@dataclass(frozen=True)
class Trend:
    """All contestants of the same runs: what is compared is measured in the same blocks."""

    work: str
    conditions: str
    threads: int | None  # unknown of another tool
    device: str
    machine: str
    quantity: str
    unit: str  # for people; times are compared, and of other quantities what they are
    runs: tuple[str, ...]
    series: tuple[Series, ...]
    foreign: str = ""  # the tool that measured it, where that was not fairlap

    @property
    def is_rate(self) -> bool:
        return self.unit == "1/s"

    @property
    def is_time(self) -> bool:
        """Whether times are compared, as of rates those of one."""
        return self.unit in TIMES

    def asked(self, on: str) -> tuple[Series, ...]:
        return tuple(each for each in self.series if not on or _is_asked(each, on))


def trends_of(
    figures: Sequence[RecordedFigure], machines: Mapping[str, Mapping[str, str]], *, model: str, on: str = ""
) -> list[Trend]:
    """Those in which a contestant takes part that is named ``on`` or is of this framework."""
    found: dict[tuple[str, str, str, int | None, str, str, str], list[RecordedFigure]] = defaultdict(list)
    for each in figures:
        machine = machine_named(machines.get(each.run, {}), each.device)
        what = (each.work_id, each.data, each.conditions, each.threads, each.device, machine, each.quantity)
        found[what].append(each)
    titles = told_apart({each.work_id: each.work for each in figures})
    trends = []
    for (work_id, data, conditions, threads, device, machine, quantity), own in found.items():
        runs = tuple(dict.fromkeys(each.run for each in own))
        title = work_title(f"{model} · {titles[work_id]}", data)
        trends.append(Trend(title, conditions, threads, device, machine, quantity, own[0].unit, runs, _series_of(own)))
    return [trend for trend in trends if trend.asked(on)]


def machine_named(facts: Mapping[str, str], device: str) -> str:
    """By its hardware: what is installed on it may change within a series."""
    parts = [facts.get("cpu model", "unknown processor"), f"{facts.get('cores', '?')} cores", facts.get("memory", "")]
    if device != "cpu":
        parts.append(named_in(facts, device) or "unknown GPU")
    return ", ".join(part for part in parts if part)


def unversioned(contestant: str) -> str:
    """``torch:compile`` for ``torch==2.13.0:compile``."""
    plain, bracket, precision = contestant.partition(" (")
    return _unversioned(plain) + bracket + precision


@cache
def _unversioned(contestant: str) -> str:
    version = contestant_named(contestant).version
    return contestant.replace(version, "", 1) if version else contestant


def _series_of(figures: list[RecordedFigure]) -> tuple[Series, ...]:
    together: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for each in figures:
        name = unversioned(each.contestant)
        together |= {name} if (each.run, name) in seen else set()
        seen.add((each.run, name))
    points: dict[tuple[str, str], list[RecordedFigure]] = defaultdict(list)
    for each in figures:
        name = unversioned(each.contestant)
        key = (each.contestant if name in together else name, each.framework)
        points[key].append(each)
    return tuple(Series(*key, tuple(own)) for key, own in sorted(points.items()))


def _is_asked(series: Series, on: str) -> bool:
    own = (series.framework, series.contestant)
    return any(name in own or unversioned(name) == series.contestant for name in on.split(","))
