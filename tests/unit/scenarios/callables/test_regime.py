"""Callables on a GPU that has rested, or whose clock has fallen under load."""

from __future__ import annotations

import math
import time
from itertools import count
from typing import Any

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import sample_clocks
from fairlap.scenarios import regime
from fairlap.scenarios.callables.in_process import compare
from fairlap.scenarios.regime import Regime, regime_named
from watched_machine import fake_nvml_path, fresh_fake_nvml

_BEFORE_IT_IS_WARM = 50  # kernels, of the hundreds that are a load


class Clock:
    """Of a GPU that slows down from 1980 to 1500 MHz in ten seconds of load; each look works for a tenth of one."""

    def __init__(self, patch: pytest.MonkeyPatch, *, falls_s: float = 10.0) -> None:
        self.now_s, self._falls_s = 0.0, falls_s
        patch.setattr(time, "perf_counter", lambda: self.now_s)

    def work(self) -> float:
        self.now_s += 0.1
        return 1500.0 + 480.0 * max(0.0, 1 - self.now_s / self._falls_s)


def test_a_load_goes_on_until_the_clock_is_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sustained = Clock(monkeypatch), Regime("sustained")
    sustained.load(clock.work)
    assert 10.0 < clock.now_s < 12.5
    assert sustained.text.endswith("s of load at 1500 MHz")
    assert sustained.notices == ()


def test_a_clock_that_never_settles_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sustained = Clock(monkeypatch), Regime("sustained")

    def falling() -> float:
        clock.work()
        return 2000.0 * math.pow(0.98, clock.now_s)

    sustained.load(falling)
    assert clock.now_s == pytest.approx(60.0, abs=0.2)
    assert [each.code for each in sustained.notices] == ["W_CLOCK_NOT_STEADY"]


def test_where_the_clock_is_not_known_the_load_has_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sustained = Clock(monkeypatch), Regime("sustained")

    def unknown() -> None:
        clock.work()

    sustained.load(unknown)
    assert 3.0 <= clock.now_s < 3.2
    assert "MHz" not in sustained.text


def test_a_burst_rests_and_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    burst = Regime("burst")
    burst.load(lambda: pytest.fail("a burst has no load"))
    burst.before_turn()
    assert rests == [0.5]
    assert burst.text.startswith("burst")


@pytest.mark.parametrize(("name", "on_stream"), [("cool", True), (3, True), ("burst", False), ("sustained", False)])
def test_another_regime_and_one_without_a_stream_are_refused(name: object, on_stream: bool) -> None:
    with pytest.raises(InvalidRequest):
        regime_named(name, on_stream=on_stream)


@on_fakes
def test_every_turn_of_a_burst_begins_with_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, rests = Machine(), list[str]()
    monkeypatch.setattr(Regime, "before_turn", lambda self: rests.append(self.kind))
    callables = {"fast": lambda: machine.kernel(20_000), "slow": lambda: machine.kernel(40_000)}
    given: dict[str, Any] = {"stream": machine.stream, "blocks": 6, "seconds": 0.005, "calls_per_sample": 1}
    found = compare(callables, regime="burst", **given)
    assert rests == ["burst"] * 12
    assert found.regime.startswith("burst")
    assert found.to_dict()["regime"] == found.regime
    assert compare(callables, **given).regime == ""


@on_fakes
def test_callables_are_timed_at_the_clock_that_load_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, nvml = Machine(), fresh_fake_nvml()
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)
    monkeypatch.setattr(regime, "_LEAST_LOAD_S", 0.3)
    monkeypatch.setattr(regime, "_WINDOW_S", 0.1)
    kernels = count()

    def kernel(length_ns: int) -> None:
        """Slow down the clock early in the load, and not at a time at which a busy machine may be somewhere else."""
        nvml.fake_nvml_set_reading(0, b"sm_mhz", 1980 if next(kernels) < _BEFORE_IT_IS_WARM else 1605)
        machine.kernel(length_ns)

    callables = {"fast": lambda: kernel(20_000), "slow": lambda: kernel(40_000)}
    given: dict[str, Any] = {"stream": machine.stream, "blocks": 6, "seconds": 0.005, "calls_per_sample": 1}
    found = compare(callables, regime="sustained", **given)
    assert found.regime.endswith("at 1605 MHz")
    assert "sustained" in str(found)
