"""Energy of repeated work and of rest, from Python, over the fake NVML."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlap.engine.sampling.energy import (
    IdlePower,
    Trial,
    above_idle,
    idle_power,
    repeated_energy,
    run_trials,
)
from fairlap.engine.sampling.field_calibration import calibration_table
from fairlap.engine.sampling.joules import Energy
from fairlap.engine.sampling.telemetry import Sampler
from fairlap.errors import InvalidRequest, NotAvailable

_FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[3] / "build/release/cpp/fakes"))
_PATH = str(_FAKES / "libfairlap_fake_nvml.so")
_MS = 1_000_000


@pytest.fixture
def board() -> Iterator[ctypes.CDLL]:
    """200 W, a counter that ticks every 20 ms, on the real clock."""
    assert Path(_PATH).exists(), f"{_PATH} is missing; `make test` builds it"
    fake = ctypes.CDLL(_PATH)
    fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, ctypes.c_double]
    fake.fake_nvml_power_sensor.argtypes = [ctypes.c_int, *[ctypes.c_int64] * 4]
    fake.fake_nvml_energy_counter.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64]
    fake.fake_nvml_set_cost.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    fake.fake_nvml_reset()
    fake.fake_nvml_power_constant(0, 200_000.0)
    fake.fake_nvml_energy_counter(0, 0, 20 * _MS, 0)
    fake.fake_nvml_use_real_clock(1)
    yield fake
    fake.fake_nvml_use_real_clock(0)
    fake.fake_nvml_reset()


@pytest.mark.slow
def test_a_repeat_costs_its_power_times_its_time_within_the_bound(board: ctypes.CDLL) -> None:
    with Sampler(nvml_library=_PATH, fast_period_s=0.005, slow_period_s=0.005, call_share=1.0) as sampler:
        trials = run_trials(lambda: time.sleep(0.01), sampler, seconds=5.2, trials=3)
    readings = sampler.collect()
    energy = repeated_energy(sampler, readings, "nvml:0", "energy_j", trials, power="power_instant_w")
    repeats = sum(trial.repeats for trial in trials)
    exact_j = 200.0 * sum(trial.end_ns - trial.begin_ns for trial in trials) / 1e9 / repeats
    assert energy.unresolved_because == ""
    assert energy.joules is not None
    assert energy.low_j is not None
    assert energy.high_j is not None
    assert energy.low_j <= exact_j <= energy.high_j, energy
    assert energy.gain_share == 0.05
    assert energy.seconds >= 5.2
    whole = trials[0].begin_ns, trials[-1].end_ns
    counter = sampler.energy(readings, "nvml:0", "energy_j", *whole)
    integral = sampler.energy(readings, "nvml:0", "power_instant_w", *whole)
    # How well the ends of the region are known depends on how busy the machine is; the counter's interval shows it.
    assert integral.joules is not None
    assert counter.joules is not None
    assert counter.low_j is not None
    assert counter.high_j is not None
    assert abs(counter.joules - integral.joules) <= counter.high_j - counter.low_j


def test_too_little_work_is_unresolved_and_never_nothing(board: ctypes.CDLL) -> None:
    with Sampler(nvml_library=_PATH, fast_period_s=0.005, slow_period_s=0.005, call_share=1.0) as sampler:
        trials = run_trials(lambda: time.sleep(0.01), sampler, seconds=0.4, trials=2)
    energy = repeated_energy(sampler, sampler.collect(), "nvml:0", "energy_j", trials)
    assert energy.joules is None
    assert energy.low_j is None
    assert "less than 5 s" in energy.unresolved_because


def test_wrong_wishes_of_energy_are_refused(board: ctypes.CDLL) -> None:
    sampler = Sampler(nvml_library=_PATH)
    with pytest.raises(NotAvailable):
        run_trials(lambda: None, sampler)
    with pytest.raises(InvalidRequest, match="power_instant_w of nvml:0"):
        repeated_energy(sampler, sampler.collect(), "nvml:0", "power_instant_w", [Trial(0, 1, 1)])
    with pytest.raises(InvalidRequest, match=r"^readings .*5"):
        repeated_energy(sampler, 5, "nvml:0", "energy_j", [Trial(0, 1, 1)])  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"^gain_share .*'x'"):
        repeated_energy(sampler, sampler.collect(), "nvml:0", "energy_j", [], gain_share="x")  # type: ignore[arg-type]
    with sampler:
        with pytest.raises(InvalidRequest, match=r"^trials "):
            run_trials(lambda: None, sampler, trials=0)
        with pytest.raises(InvalidRequest, match=r"^seconds .*'x'"):
            run_trials(lambda: None, sampler, seconds="x")  # type: ignore[arg-type]


def test_a_device_of_a_library_that_is_absent_is_absent_for_the_same_reason() -> None:
    sampler = Sampler(nvml_library="/nowhere/nvml.so")
    with pytest.raises(NotAvailable, match=r"nvml:0 .*/nowhere/nvml\.so"):
        repeated_energy(sampler, sampler.collect(), "nvml:0", "energy_j", [])


def test_rest_is_measured_and_given_apart() -> None:
    second = 1_000_000_000
    idle = idle_power(Energy(30.0, 28.0, 33.0, "", 9), 0, 2 * second)
    assert idle == IdlePower(15.0, 14.0, 16.5)
    above = above_idle(Energy(100.0, 90.0, 110.0, "", 7), 0, 4 * second, idle)
    assert above.joules == pytest.approx(40.0)
    assert (above.low_j, above.high_j) == pytest.approx((24.0, 54.0))
    assert above.readings == 7
    unknown = Energy(None, None, None, "too few readings", 0)
    assert above_idle(unknown, 0, second, idle).joules is None
    with pytest.raises(NotAvailable, match="too few readings"):
        idle_power(unknown, 0, second)


def test_a_region_that_ends_before_it_begins_is_refused_wherever_one_is_given(board: ctypes.CDLL) -> None:
    known, rest = Energy(30.0, 28.0, 33.0, "", 9), IdlePower(15.0, 14.0, 16.0)
    sampler = Sampler(nvml_library=_PATH)
    readings, swapped = sampler.collect(), (7, 5)
    for asked in (
        lambda: sampler.energy(readings, "nvml:0", "energy_j", *swapped),
        lambda: sampler.energy(readings, "nvml:0", "power_instant_w", *swapped),
        lambda: repeated_energy(sampler, readings, "nvml:0", "energy_j", [Trial(*swapped, 1)]),
        lambda: idle_power(known, *swapped),
        lambda: above_idle(known, *swapped, rest),
    ):
        with pytest.raises(InvalidRequest, match=r"end_ns, 5, .*begin_ns, 7"):
            asked()
    with pytest.raises(InvalidRequest, match="begin_ns and end_ns"):
        idle_power(known, 5, 5)


def test_a_sampler_reports_what_each_field_costs_and_adapts_to_how_often_it_is_new(board: ctypes.CDLL) -> None:
    board.fake_nvml_power_point.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_int]
    board.fake_nvml_power_point(0, 1000 * 1000 * _MS, 90_000_000.0, 1)
    board.fake_nvml_power_sensor(0, 40 * _MS, 0, 0, 1000 * _MS)
    board.fake_nvml_set_cost(b"nvmlDeviceGetMemoryInfo", 300_000)
    sampler = Sampler(nvml_library=_PATH)
    assert sampler.fast_period_s == 0.05
    found = {(each.source, each.field): each for each in sampler.calibration(0.6)}
    every = {source.name: source.fields for source in sampler.sources}
    assert set(found) == {(name, each.name) for name in every for each in every[name] if not each.absent_because}
    power = found["nvml:0", "power_instant_w"]
    assert power.period_s is not None
    assert 0.02 < power.period_s < 0.08
    assert power.window_s is None
    assert "a known load would show it" in power.window_unknown_because
    memory = found["nvml:0", "memory_used_bytes"]
    assert memory.call_ns is not None
    assert memory.worst_call_ns is not None
    assert power.call_ns is not None
    assert memory.worst_call_ns >= memory.call_ns >= 300_000 > power.call_ns
    assert memory.period_s is None
    assert sampler.fast_period_s == pytest.approx(power.period_s / 4, rel=0.2)
    lines = calibration_table(found.values()).splitlines()
    assert len(lines) > len(found) + 1
    assert f"{power.period_s * 1e3:.1f} ms" in next(line for line in lines if "power_instant_w" in line)
    assert any(line.startswith("(1) ") for line in lines)
    chosen = Sampler(nvml_library=_PATH, fast_period_s=0.03)
    chosen.calibration(0.1)
    assert chosen.fast_period_s == 0.03
    with chosen, pytest.raises(NotAvailable):
        chosen.calibration(0.1)
    with pytest.raises(InvalidRequest, match=r"^seconds "):
        chosen.calibration(0.0)
