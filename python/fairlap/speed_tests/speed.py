"""What the fixture ``fairlap`` does: measure a callable, and compare it with its baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.machine.files.atomic_files import why_not_writable
from fairlap.request.units import LargestSlowdown, Seconds, require_within_a_day
from fairlap.speed_tests.baselines import CODE, Baseline, Baselines, read_baselines, write_baselines
from fairlap.speed_tests.fresh_processes import FreshProcesses, Measured, TestFailed, report

if TYPE_CHECKING:
    from fairlap.verdict import Regression

_SECONDS = 0.2


class TooSlow(AssertionError):
    """A slowdown is shown that is larger than the test allows."""


@dataclass(frozen=True)
class Speed:
    """What is known of one callable. ``change`` is "not compared" without a baseline, else one of the verdicts."""

    key: str
    medians_ns: tuple[float, ...]  # of each process; of this one alone where there is no baseline
    change: str = "not compared"
    ratio: float | None = None  # to the baseline, above 1 where it is slower
    low: float | None = None
    high: float | None = None
    why: str = ""

    @property
    def median_ns(self) -> float:
        return median(self.medians_ns) if self.medians_ns else math.nan

    def __str__(self) -> str:
        if not self.medians_ns:
            return f"{self.key}: not measured ({self.why})"
        kind = "process" if len(self.medians_ns) == 1 else "fresh process"
        processes = quantity_text.count(len(self.medians_ns), kind)
        parts = [f"{quantity_text.duration(self.median_ns)} in {processes}", self.change]
        if self.ratio is not None:
            interval = quantity_text.ratio_interval(self.ratio, self.low, self.high)
            parts.append(f"{interval} times as long as the baseline")
        return f"{self.key}: {', '.join(parts)}{f' ({self.why})' if self.why else ''}"


@dataclass
class Session:
    """What all speed tests of a session share."""

    file: Path
    processes: FreshProcesses
    saves: bool = False
    strict: bool = False
    why_not_alone: str = ""  # why nothing is timed: other tests run at the same time
    speeds: list[Speed] = field(default_factory=list)
    _by_test: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)

    @cached_property
    def baselines(self) -> Baselines:
        return read_baselines(self.file)

    def require_usable(self) -> None:
        """Raise InvalidRequest where its file cannot be read, or not be saved although that was asked for."""
        assert self.baselines is not None  # read
        if self.saves and (why := why_not_writable(self.file)):
            raise InvalidRequest(f"the baselines {self.file} cannot be saved: {why}", code=CODE)

    @cached_property
    def facts(self) -> dict[str, str]:
        from fairlap.machine.facts import machine_facts

        return machine_facts()

    def in_fresh_processes(self, node_id: str, key: str) -> tuple[float, ...]:
        """Return the medians; a test that measures several callables is run again once for all of them."""
        if node_id not in self._by_test:
            self._by_test[node_id] = self.processes.medians_ns(node_id)
        if key not in self._by_test[node_id]:
            raise TestFailed(f"{key} was not measured in a fresh process; does the test measure it every time?")
        return self._by_test[node_id][key]

    def save(self) -> int:
        """How many baselines were saved."""
        saved = [each for each in self.speeds if self.saves and len(each.medians_ns) > 1]
        for each in saved:
            self.baselines.save(each.key, each.medians_ns, self.facts)
        if saved:
            write_baselines(self.file, self.baselines)
        return len(saved)


class SpeedTest:
    """The fixture's value: ``fairlap(call, max_slowdown="5%")``."""

    def __init__(self, session: Session, node_id: str, report_to: Path | None = None) -> None:
        self._session, self._node_id, self._report_to = session, node_id, report_to
        self._keys: list[str] = []

    def __call__(
        self,
        call: Callable[[], object],
        *,
        max_slowdown: str | float = "2%",
        seconds: str | float = _SECONDS,
        name: str = "",
    ) -> Speed:
        """Measure the callable, and fail the test when it is shown to be slower than its baseline.

        It fails beyond ``max_slowdown``. ``name`` distinguishes several callables of a test, which otherwise are
        numbered.
        """
        __tracebackhide__ = True
        if not callable(call):
            raise InvalidRequest(f"fairlap(call) takes a callable without arguments (got {type(call).__name__})")
        allowed, measured_s = float(LargestSlowdown(max_slowdown)), float(Seconds(seconds))
        require_within_a_day("seconds", measured_s)
        key = self._key(name)
        if self._report_to is not None:
            found = Measured(key, _median_ns(call, measured_s))
            report(found, self._report_to)
            return Speed(key, (found.median_ns,))
        speed = self._speed(call, key, measured_s, allowed)
        self._session.speeds.append(speed)
        self._require(speed, allowed)
        return speed

    def _key(self, name: str) -> str:
        number = len(self._keys) + 1
        key = f"{self._node_id}[{name}]" if name else self._node_id + (f" #{number}" if number > 1 else "")
        if key in self._keys:
            raise InvalidRequest(f"{name!r} is measured twice in one test; give each callable its name")
        self._keys.append(key)
        return key

    def _speed(self, call: Callable[[], object], key: str, seconds: float, allowed: float) -> Speed:
        __tracebackhide__ = True
        session = self._session
        if session.why_not_alone:
            call()
            return Speed(key, (), why=session.why_not_alone)
        baseline = session.baselines.tests.get(key)
        if baseline is None and not session.saves:
            return Speed(key, (_median_ns(call, seconds),), why="no baseline; one process shows no difference")
        call()  # whatever it raises is shown here, with its traceback
        medians = session.in_fresh_processes(self._node_id, key)
        if session.saves or baseline is None:
            return Speed(key, medians, why="saved as the baseline")
        return _compared(key, baseline, session.baselines.facts_of(baseline), medians, session.facts, allowed)

    def _require(self, speed: Speed, allowed: float) -> None:
        """By the rule of the gate."""
        from fairlap.verdict import Slowdown, slowdown

        __tracebackhide__ = True
        shown = None if speed.low is None or speed.high is None else slowdown(speed.low, speed.high, allowed)
        if shown is Slowdown.EXCEEDED:
            raise TooSlow(f"{speed}; {quantity_text.share(allowed, 3)} is allowed")
        if self._session.strict and (shown is Slowdown.UNDECIDED or speed.change == "not comparable"):
            raise TooSlow(
                f"{speed}; {quantity_text.share(allowed, 3)} is allowed, and --fairlap-strict fails what is not decided"
            )


def _median_ns(call: Callable[[], object], seconds: float) -> float:
    from fairlap.engine import measure

    measurement = measure(call, seconds=seconds)
    if measurement.interrupted:
        raise KeyboardInterrupt
    return measurement.median_ns


def _compared(
    key: str, baseline: Baseline, facts_before: dict[str, str], medians: Sequence[float], facts: dict[str, str],
    allowed: float,
) -> Speed:  # fmt: skip
    from fairlap.machine.differences import comparable_facts
    from fairlap.verdict import compare_runs

    if len(baseline.medians_ns) < 2:
        why = "its baseline is of one process, which shows no difference"
        return Speed(key, tuple(medians), "not comparable", why=why)
    before, after = comparable_facts(facts_before, facts, "cpu")
    found = compare_runs(
        baseline.medians_ns, medians, environment_before=before, environment_after=after, margin=allowed
    )
    return Speed(key, tuple(medians), found.change.value, found.ratio, found.low, found.high, _why(found))


def _why(found: Regression) -> str:
    return "; ".join(str(each) for each in found.warnings)
