"""Processes during which the GPU was slowed down are run again, a few times, and then nothing is claimed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from fairlap.meters.device_slowdown import SLOWED, DeviceSlowdown, DeviceState
from fairlap.race.processes import repeated_processes, turns
from fairlap.race.processes.one_process import ProcessRun
from fairlap.race.processes.repeated_processes import MOST_REPEATS, RepeatedProcesses
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from small_races import plan_of, raced


class Device:
    """Slowed down by these shares of the time, one process after the other, and not at all afterwards."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *slowed: float, budget: int = 99) -> None:
        self.slowed, self.measured, self.pauses_s, self.said = list(slowed), 0, [], []  # type: ignore[var-annotated]
        self.budget = budget
        monkeypatch.setattr(time, "sleep", self.pauses_s.append)
        self.repeated = RepeatedProcesses(self.said.append, lambda: self.measured < self.budget)

    def run(self, **more: Any) -> ProcessRun:
        result = ProcessResult(0, 0, "torch", "work", "controlled", **more)
        return cast(ProcessRun, SimpleNamespace(result=result, has_steps=False))

    def measure(self, run: ProcessRun) -> None:
        self.measured += 1
        run.result.machine = {SLOWED: self.slowed.pop(0) if self.slowed else 0.0}

    def undisturbed(self, **more: Any) -> ProcessResult:
        return self.repeated.undisturbed(self.run(**more), self.measure, self.run).result


def test_a_process_is_run_again_until_the_gpu_keeps_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, 0.4, 0.02)
    kept = device.undisturbed()
    assert (kept.repeats, kept.machine[SLOWED], device.measured) == (2, 0.0, 3)
    assert device.pauses_s == [2.0, 4.0]
    assert len(device.said) == 2


def test_an_instant_of_slowdown_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, 0.009)
    assert (device.undisturbed().repeats, device.measured) == (0, 1)


def test_a_gpu_that_stays_slow_is_given_up_for_the_whole_race(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, *[0.5] * 20)
    kept = device.undisturbed()
    assert (kept.repeats, kept.machine[SLOWED], device.measured) == (MOST_REPEATS, 0.5, MOST_REPEATS + 1)
    device.undisturbed()
    assert device.measured == MOST_REPEATS + 2


def test_no_more_is_run_than_the_budget_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, *[0.5] * 20, budget=2)
    assert (device.undisturbed().repeats, device.measured) == (1, 2)


def test_a_process_that_failed_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, 0.5)
    assert (device.undisturbed(outcome="crash").repeats, device.measured) == (0, 1)


class Scripted(DeviceSlowdown):
    """Of a device that is slowed down during the first process of a race."""

    shares: ClassVar[list[float]]

    @contextmanager
    def turn(self, states: list[DeviceState]) -> Iterator[None]:
        yield
        states[:] = [DeviceState(sm_mhz=1980), DeviceState(sm_mhz=1410)]

    def readings(self) -> dict[str, float]:
        return {SLOWED: self.shares.pop(0)}


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.usefixtures("example")
@needs_proc
def test_a_race_keeps_only_the_process_that_ran_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Scripted.shares = [0.3, 0.0]
    monkeypatch.setattr(turns, "DeviceSlowdown", Scripted)
    monkeypatch.setattr(repeated_processes, "_FIRST_PAUSE_S", 0.0)
    [process] = raced(plan_of("example"))
    assert (process.outcome, process.repeats, process.machine[SLOWED]) == ("finished", 1, 0.0)
    assert [state.sm_mhz for state in process.device_states] == [1980, 1410]
    assert process.caches == "warm"  # the process before it has filled them
