"""The clock of a GPU at each sample, through the native sampler and a library with NVML's binary interface.

Bits are those of nvml.h: 0x8 and 0x80 by the device or a power brake, 0x20 and 0x40 by heat, 0x4 by the power limit.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import numpy as np
import pytest
from fairlap.engine.cuda.stream_measurement import StreamMeasurement
from fairlap.engine.measurement import Measurement, WarmUp
from fairlap.engine.quantity import Quantity
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import sample_clocks
from fairlap.meters.sample_clocks import SampleClocks, all_are_throttled, cycles_of
from watched_machine import NO_NVML, fake_nvml_path, fresh_fake_nvml

pytestmark = pytest.mark.sanitized
LONGEST_WAIT_S = 30.0


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)
    return fresh_fake_nvml()


def measured(started_ns: Sequence[int], values_ns: Sequence[float], name: str = "device_span_ns") -> StreamMeasurement:
    quantities = {
        each: Quantity(each, "events", np.array(values_ns, float).data, 1.0, {}) for each in (name, "host_issue_ns")
    }
    return StreamMeasurement(
        name="kernel",
        quantities=quantities,
        absent={},
        calls_per_sample=1,
        stopped_by="samples",
        elapsed_s=1.0,
        warm_up=WarmUp("none", True, 0, 0.0),
        collector_paused=True,
        settings={},
        device=0,
        started_ns=np.array(started_ns, float).data,
    )


def read_twice(clocks: SampleClocks) -> int:
    """Let the sampler read twice, and return the time between the two on the clock of samples."""
    sampler = clocks._sampler
    assert sampler is not None
    times = []
    for _ in range(2):
        before, until_s = sampler.counts["slow_rounds"], time.monotonic() + LONGEST_WAIT_S
        while sampler.counts["slow_rounds"] < before + 2:
            assert time.monotonic() < until_s
            time.sleep(0.001)
        times.append(sampler.mark(0))
    return times[0]


def times_at(nvml: ctypes.CDLL, clocks: SampleClocks, reading: bytes, values: Sequence[int]) -> list[int]:
    """Return times at which the device had each of these values, long enough to be read before and after."""
    clocks.start(0)
    times = []
    for value in values:
        nvml.fake_nvml_set_reading(0, reading, value)
        read_twice(clocks)
        times.append(read_twice(clocks))
    return times


def short_samples_at(times: Sequence[int]) -> list[int]:
    """Begin a sample at each time and another one just after, which ends it."""
    return [moment for at in times for moment in (at, at + 1)]


def test_each_sample_has_the_clock_of_its_time(nvml: ctypes.CDLL) -> None:
    with SampleClocks() as clocks:
        times = times_at(nvml, clocks, b"sm_mhz", (1980, 1500, 345))
        found = clocks.applied(measured(short_samples_at(times), [1000.0] * 6))
    assert isinstance(found, StreamMeasurement)
    assert found.sm_mhz is not None
    assert found.sm_mhz[::2].tolist() == [1980.0, 1500.0, 345.0]
    assert found.settings["sm_clock"] == "345 to 1980 MHz"
    assert cycles_of(found) == pytest.approx(np.median(found.sm_mhz))


@pytest.mark.parametrize(
    ("reason", "left_out"), [(0x8, 1), (0x20, 1), (0x40 | 0x4, 1), (0x80, 1), (0x4, 0), (0x1, 0), (0x100, 0)]
)
def test_samples_of_a_slowed_device_are_left_out_whatever_they_took(
    nvml: ctypes.CDLL, reason: int, left_out: int
) -> None:
    for values in ([1.0, 1.0, 9.0, 9.0, 1.0, 1.0], [9.0, 9.0, 1.0, 1.0, 9.0, 9.0]):
        with SampleClocks() as clocks:
            times = times_at(nvml, clocks, b"throttle_reasons", (0, reason, 0))
            found = clocks.applied(measured(short_samples_at(times), values))
        assert np.isnan(found.device_span_ns[2]) == bool(left_out)
        assert np.isnan(found.host_issue_ns[2]) == bool(left_out)
        assert np.isfinite(found.device_span_ns[[0, 4]]).all()
        assert bool(found.invalid.get("throttled", 0)) is bool(left_out)
        assert [each.code for each in found.warnings] == ["W_THROTTLED_SAMPLES"] * left_out
        assert not all_are_throttled(found)


def test_a_measurement_of_a_slowed_device_has_no_sample_left(nvml: ctypes.CDLL) -> None:
    with SampleClocks() as clocks:
        [at] = times_at(nvml, clocks, b"throttle_reasons", (0x40,))
        found = clocks.applied(measured([at, at + 1, at + 2], [1.0, 2.0, 3.0]))
    assert all_are_throttled(found)
    assert cycles_of(found) is None


def test_a_reading_from_before_counts_for_the_next_measurement(nvml: ctypes.CDLL) -> None:
    with SampleClocks() as clocks:
        [first] = times_at(nvml, clocks, b"sm_mhz", (1500,))
        clocks.applied(measured([first, first + 1], [1.0, 1.0]))
        again = clocks.applied(measured([first, first + 1], [1.0, 1.0]))
    assert isinstance(again, StreamMeasurement)
    assert again.sm_mhz is not None
    assert again.sm_mhz.tolist() == [1500.0, 1500.0]


def test_cycles_of_the_host_alone_mean_nothing(nvml: ctypes.CDLL) -> None:
    with SampleClocks() as clocks:
        [at] = times_at(nvml, clocks, b"sm_mhz", (1500,))
        assert cycles_of(clocks.applied(measured([at, at + 1], [1.0, 1.0], "host_issue_ns"))) is None


def test_without_nvml_samples_stay_and_the_reason_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", NO_NVML)
    with SampleClocks() as clocks:
        found = clocks.applied(measured([1, 2], [1.0, 2.0]))
    assert found.headline.values.tolist() == [1.0, 2.0]
    assert NO_NVML in found.settings["sm_clock"]
    assert cycles_of(found) is None


def test_an_instance_of_a_divided_device_has_no_clock_of_its_own(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0, "MIG-1"))
    with SampleClocks() as clocks:
        clocks.start(0)
    assert clocks.absent


def test_what_was_timed_on_the_processor_is_left_alone(nvml: ctypes.CDLL) -> None:
    plain = Measurement("f", {}, {}, 1, "samples", 1.0, WarmUp("none", True, 0, 0.0), True, {})
    with SampleClocks() as clocks:
        assert clocks.applied(plain) is plain
        assert clocks._sampler is None
