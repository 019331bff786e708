"""A contestant on a GPU whose cache is cold at each call, or which has rested or been loaded before it is measured.

What a fake cannot show is whether a cache is cold, or a clock low. It shows what is done before each call, that none of
it is timed, and what the clock was when the load ended.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import device_framework
import numpy as np
import pytest
from contestant_on_fakes import OneContestant
from cuda_on_fakes import on_fakes
from fairlap.frameworks.contract import Unsupported
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import sample_clocks
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.scenarios import regime
from fairlap.scenarios.calls import latency
from fairlap.scenarios.calls.latency_messages import DrawnCall, Measure
from fairlap.scenarios.regime import Regime
from watched_machine import fake_nvml_path, fresh_fake_nvml

COLD = DeviceConditions(cache="cold")
FLUSHED = "flushed before each sample with 100 MiB, 2.0 times the L2 cache"
ON_DEVICE = ("device_span_ns", "context_span_ns", "kernel_sum_ns")


def flushes_at_each_kernel(contestant: OneContestant, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how often the cache had been written over when each kernel was launched."""
    seen: list[int] = []
    kernel = contestant.machine.kernel

    def noted(*arguments: Any) -> int:
        seen.append(int(contestant.machine.cuda.fake_cuda_call_count(b"cuMemsetD32Async")))
        return kernel(*arguments)

    monkeypatch.setattr(contestant.machine, "kernel", noted)
    return seen


@on_fakes
def test_the_cache_is_flushed_before_each_timed_and_each_drawn_call(monkeypatch: pytest.MonkeyPatch) -> None:
    contestant = OneContestant()
    contestant.answer()
    timed = contestant.service.held.timed
    conditions = timed.conditions(COLD)
    seen = flushes_at_each_kernel(contestant, monkeypatch)
    request = Measure(samples=20, warmup=2, drawn=(DrawnCall(0.5, 2),), drawn_path=str(contestant.folder / "drawn"))
    measurement, drawn = timed.measure(request, conditions)
    assert measurement.calls_per_sample == 1
    assert len(drawn.calls) == 1
    warmed_for_the_drawn_call = 1
    assert len(seen) == 2 + 20 + 1 + warmed_for_the_drawn_call
    assert len(set(seen)) == len(seen) - warmed_for_the_drawn_call


@on_fakes
def test_every_quantity_of_a_cold_race_is_cold_and_its_result_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    contestant = OneContestant()
    contestant.answer()
    before = contestant.machine.cuda.fake_cuda_outstanding(b"device_allocations")
    flushes: dict[str, int] = {}
    time_on_stream = device_framework_timer()

    def counted(*arguments: Any, **options: Any) -> Any:
        began = contestant.machine.cuda.fake_cuda_call_count(b"cuMemsetD32Async")
        found = time_on_stream(*arguments, **options)
        flushes[options["method"]] = contestant.machine.cuda.fake_cuda_call_count(b"cuMemsetD32Async") - began
        return found

    monkeypatch.setattr("fairlap.engine.cuda.stream_calls.time_on_stream", counted)
    measured = contestant.measure(on_device=COLD)
    assert measured.absent == {}
    assert min(flushes.values()) >= 20
    assert {f"{method}_ns" for method in flushes} == set(ON_DEVICE)
    assert measured.device_conditions == {"cache": FLUSHED}
    assert np.allclose(contestant.samples["device_span_ns"], device_framework.KERNEL_NS, atol=0.01)
    assert contestant.machine.cuda.fake_cuda_outstanding(b"device_allocations") == before


def device_framework_timer() -> Any:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    return time_on_stream


@on_fakes
def test_lines_that_persist_are_reset_in_a_race_too() -> None:
    contestant = OneContestant()
    cuda = contestant.machine.cuda
    cuda.fake_cuda_set_aside_for_persisting.argtypes = (ctypes.c_int, ctypes.c_uint64)
    cuda.fake_cuda_resets_while_busy.restype = ctypes.c_int64
    cuda.fake_cuda_set_aside_for_persisting(1, 8 << 20)
    contestant.answer()
    measured = contestant.measure(on_device=COLD)
    assert measured.device_conditions == {"cache": f"{FLUSHED}, persisting lines reset"}
    assert cuda.fake_cuda_call_count(b"cuCtxResetPersistingL2Cache") >= 4 * 20
    assert cuda.fake_cuda_resets_while_busy() == 0


@on_fakes
def test_writing_over_the_cache_is_not_timed() -> None:
    """Here a flush costs the host a hundred times as long as a call: 2 ms of the fake's clock, which the host waits."""
    contestant = OneContestant()
    contestant.answer()
    timed = contestant.service.held.timed
    conditions = timed.conditions(COLD)
    make_cold = conditions._cold.make_cold  # type: ignore[union-attr]

    def slow() -> None:
        time.sleep(0.005)
        make_cold()

    class Slow:
        text = "slow"

        def __init__(self) -> None:
            self.make_cold = slow

    conditions._cold = Slow()  # type: ignore[assignment]
    measurement, _ = timed.measure(Measure(samples=10, warmup=1), conditions)
    assert float(np.median(measurement.wall_ns)) < 2.5e6


@on_fakes
def test_a_warm_race_flushes_nothing() -> None:
    contestant = OneContestant()
    contestant.answer()
    contestant.machine.cuda.fake_cuda_reset_call_counts()
    timed = contestant.service.held.timed
    timed.measure(Measure(samples=20, warmup=2))
    assert contestant.machine.cuda.fake_cuda_call_count(b"cuMemsetD32Async") == 0


@on_fakes
def test_a_burst_rests_before_each_quantity_and_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[str] = []
    monkeypatch.setattr(Regime, "before_turn", lambda self: rests.append(self.kind))
    contestant = OneContestant()
    contestant.answer()
    request = Measure(seconds=5.0, on_device=DeviceConditions(regime="burst"))
    began_s = time.perf_counter()
    measured, _ = latency.serve(contestant.service.held, request)
    assert rests == ["burst"] * 4
    assert measured.elapsed_s < 5.0
    assert time.perf_counter() - began_s < 15.0
    assert measured.warm_up is not None
    assert measured.warm_up.calls == 1
    assert measured.device_conditions["regime"].startswith("burst")


@on_fakes
def test_the_clock_that_a_load_led_to_is_part_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = fresh_fake_nvml()
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)
    monkeypatch.setattr(regime, "_LEAST_LOAD_S", 0.3)
    monkeypatch.setattr(regime, "_WINDOW_S", 0.1)
    contestant = OneContestant()
    contestant.answer()
    began_s, kernel = time.perf_counter(), contestant.machine.kernel

    def heating(*arguments: Any) -> int:
        loaded_s = time.perf_counter() - began_s
        nvml.fake_nvml_set_reading(0, b"sm_mhz", 1980 if loaded_s < 0.3 else 1605)
        return kernel(*arguments)

    monkeypatch.setattr(contestant.machine, "kernel", heating)
    measured = contestant.measure(on_device=DeviceConditions(cache="cold", regime="sustained"))
    assert measured.device_conditions["regime"].endswith("at 1605 MHz")
    assert measured.device_conditions["cache"] == FLUSHED
    assert {each.sm_mhz for each in measured.quantities if each.name in ON_DEVICE} == {1605.0}


@on_fakes
def test_a_contestant_that_is_on_no_gpu_cannot_be_asked() -> None:
    from dataclasses import replace

    contestant = OneContestant()
    contestant.answer()
    held = contestant.service.held
    held.timed._contestant = replace(held.contestant, device=None)
    with pytest.raises(Unsupported):
        contestant.measure(on_device=COLD)
