"""A contestant on a GPU, against the fake driver: its headline is wall time until the device is done.

That is alike for all; what its stream and its records show comes next to it, or the reason why not.
"""

from __future__ import annotations

import ctypes
import re

import device_framework
import numpy as np
import pytest
from contestant_on_fakes import OneContestant
from cuda_on_fakes import ILLEGAL_ADDRESS, on_fakes
from fairlap.engine import DeviceFailed
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import sample_clocks
from fairlap.scenarios.calls.latency_messages import DrawnCall, Measure
from fairlap.worker.protocol import Phase
from fairlap.worker.service import FIRST_CALL
from watched_machine import fake_nvml_path, fresh_fake_nvml

NOT_SUPPORTED = 801
UNKNOWN = 999
ALL = ("device_span_ns", "context_span_ns", "kernel_sum_ns")


@on_fakes
def test_the_first_call_ends_when_the_device_is_done() -> None:
    contestant = OneContestant()
    contestant.answer()
    assert contestant.pending() == 0
    phases = [each.name for each in contestant.sent if isinstance(each, Phase)]
    assert FIRST_CALL in phases
    assert contestant.machine.cuda.fake_cuda_call_count(b"cuCtxSynchronize") == 1


@on_fakes
def test_the_headline_is_wall_time_and_the_device_comes_beside_it() -> None:
    contestant = OneContestant()
    contestant.answer()
    measured = contestant.measure()
    assert measured.quantities[0].name == "wall_ns"
    assert set(ALL) <= set(contestant.methods)
    assert measured.absent == {}
    assert "wait for all work of the device" in contestant.methods["wall_ns"]
    assert "the test's word" in contestant.methods["device_span_ns"]
    assert np.allclose(contestant.samples["device_span_ns"], device_framework.KERNEL_NS, atol=0.01)
    assert np.allclose(contestant.samples["kernel_sum_ns"], device_framework.KERNEL_NS, atol=0.01)


def read_by_fairlap(monkeypatch: pytest.MonkeyPatch, reading: bytes, value: int) -> None:
    """Let NVML report this of the device."""
    fresh_fake_nvml().fake_nvml_set_reading(0, reading, value)
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)


@on_fakes
def test_the_clock_of_the_device_is_known_for_its_own_quantities(monkeypatch: pytest.MonkeyPatch) -> None:
    read_by_fairlap(monkeypatch, b"sm_mhz", 1755)
    contestant = OneContestant()
    contestant.answer()
    found = {each.name: each.sm_mhz for each in contestant.measure().quantities}
    assert {name: found[name] for name in ALL} == dict.fromkeys(ALL, 1755.0)
    assert found["wall_ns"] is None


@on_fakes
def test_a_device_that_is_slowed_down_has_no_quantities_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read_by_fairlap(monkeypatch, b"throttle_reasons", 0x40)
    contestant = OneContestant()
    contestant.answer()
    measured = contestant.measure()
    assert set(ALL) == set(measured.absent)
    assert all("throttled" in why for why in measured.absent.values())
    assert measured.quantities[0].name == "wall_ns"


@on_fakes
def test_every_timed_call_waits_for_the_device() -> None:
    contestant = OneContestant()
    contestant.answer()
    before = contestant.machine.cuda.fake_cuda_call_count(b"cuCtxSynchronize")
    timed = contestant.service.held.timed
    assert timed is not None
    measurement, _ = timed.measure(Measure(samples=20, warmup=0, calls_per_sample=1))
    assert contestant.machine.cuda.fake_cuda_call_count(b"cuCtxSynchronize") == before + 20
    assert measurement.headline.name == "wall_ns"
    assert contestant.pending() == 0


@on_fakes
def test_drawn_calls_on_a_device_are_made_among_the_timed_ones_and_are_complete() -> None:
    contestant = OneContestant()
    contestant.answer()
    drawn = (DrawnCall(0.3, 2),)
    measured = contestant.measure(drawn=drawn, drawn_path=str(contestant.folder / "drawn.safetensors"))
    assert [result.number for result in measured.drawn.calls] == [0]
    assert len(contestant.samples["wall_ns"]) == 20


@on_fakes
def test_the_streams_of_the_contestants_own_device_are_timed() -> None:
    """The context that is current on the thread is that of another device."""
    contestant = OneContestant("hidden")
    contestant.answer()
    contestant.measure()
    assert np.allclose(contestant.samples["kernel_sum_ns"], device_framework.KERNEL_NS, atol=0.01)
    assert (contestant.samples["context_span_ns"] > device_framework.KERNEL_NS - 1).all()


@on_fakes
def test_a_stream_that_is_not_found_is_a_reason_and_the_rest_is_measured() -> None:
    for variant, part in (("hidden", "does not show its stream"), ("unknown", "not known")):
        contestant = OneContestant(variant)
        contestant.answer()
        measured = contestant.measure()
        assert measured.quantities[0].name == "wall_ns"
        assert set(measured.absent) == {"device_span_ns"}
        assert part in measured.absent["device_span_ns"]
        assert {"context_span_ns", "kernel_sum_ns"} <= set(contestant.methods)


@on_fakes
def test_a_driver_without_context_events_still_races_by_wall_time() -> None:
    contestant = OneContestant("hidden")
    contestant.machine.fail("cuCtxRecordEvent", 0, NOT_SUPPORTED)
    contestant.answer()
    measured = contestant.measure()
    assert measured.quantities[0].name == "wall_ns"
    assert set(measured.absent) == {"device_span_ns", "context_span_ns"}
    assert "kernel_sum_ns" in contestant.methods


@on_fakes
def test_without_cupti_the_records_are_absent_with_the_reason() -> None:
    contestant = OneContestant()
    contestant.machine.cupti.fake_cupti_set_held_by_another(1)
    contestant.answer()
    measured = contestant.measure()
    assert set(measured.absent) == {"kernel_sum_ns"}
    assert "CUPTI" in measured.absent["kernel_sum_ns"]
    assert {"device_span_ns", "context_span_ns"} <= set(contestant.methods)


@on_fakes
def test_work_on_another_stream_makes_no_span_and_the_records_show_it() -> None:
    contestant = OneContestant("two-streams")
    contestant.answer()
    assert contestant.pending() == 0
    measured = contestant.measure()
    assert set(measured.absent) == {"device_span_ns"}
    assert re.match(r"in (\d+) of \1 samples ", measured.absent["device_span_ns"])
    assert "W_OTHER_STREAMS" in {notice.code for notice in measured.warnings}
    both_ns = device_framework.KERNEL_NS + device_framework.LATE_NS
    assert np.allclose(contestant.samples["kernel_sum_ns"], both_ns, atol=0.01)


@on_fakes
def test_what_a_framework_enqueues_late_is_in_the_wall_time() -> None:
    contestant = OneContestant("late")
    contestant.answer()
    assert contestant.pending() == 0
    measured = contestant.measure()
    assert measured.quantities[0].name == "wall_ns"
    assert contestant.pending() == 0


@on_fakes
def test_the_headline_is_measured_before_anything_that_slows_later_calls() -> None:
    contestant = OneContestant()
    contestant.answer()
    counted: list[int] = []
    timed = contestant.service.held.timed
    assert timed is not None
    measure_device = timed.measure_device

    def watched(*arguments: object) -> object:
        counted.append(int(contestant.machine.cupti.fake_cupti_call_count(b"cuptiSubscribe")))
        return measure_device(*arguments)  # type: ignore[arg-type]

    timed.measure_device = watched  # type: ignore[method-assign, assignment]
    contestant.measure()
    assert counted == [0]
    assert contestant.machine.cupti.fake_cupti_call_count(b"cuptiSubscribe") > 0
    assert contestant.machine.cupti.fake_cupti_outstanding(b"subscribers") == 0


@on_fakes
def test_a_profiler_that_fails_costs_one_quantity_and_not_the_contestant() -> None:
    contestant = OneContestant()
    contestant.machine.cupti.fake_cupti_fail.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.c_int)
    contestant.machine.cupti.fake_cupti_fail(b"cuptiActivityEnable", 1, UNKNOWN)
    contestant.answer()
    measured = contestant.measure()
    assert set(measured.absent) == {"kernel_sum_ns"}
    assert measured.quantities[0].name == "wall_ns"


@on_fakes
def test_a_device_that_breaks_during_the_further_quantities_fails_the_contestant() -> None:
    contestant = OneContestant()
    contestant.answer()
    timed = contestant.service.held.timed
    assert timed is not None
    contestant.machine.cuda.fake_cuda_poison(ILLEGAL_ADDRESS)
    with pytest.raises(DeviceFailed):
        timed.measure_device(Measure(samples=5), 1)
    contestant.machine.cuda.fake_cuda_poison(0)
