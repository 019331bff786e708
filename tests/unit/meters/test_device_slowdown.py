"""Whether a GPU was slowed down, through NVIDIA's own Python bindings and a library with NVML's binary interface.

Bits and fields are those of nvml.h of CUDA 13: clocks event reasons 0x8, 0x20, 0x40 and 0x80, and the counters of time
75 and 269 to 271, which older drivers number in another way.
"""

from __future__ import annotations

import ctypes
import time

import pytest
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import device_slowdown
from fairlap.meters.device_slowdown import MOST_SLOWED, SLOWED, DeviceSlowdown, DeviceState, full_memory
from watched_machine import fake_nvml_path, fresh_fake_nvml

pytestmark = pytest.mark.sanitized
THERMAL, POWER_BRAKE_SINCE_13 = 75, 271
UNSIGNED_LONG_LONG = 3
SECOND_NS = 10**9


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(device_slowdown, "board_of", lambda _: Board(0))
    control = fresh_fake_nvml()
    control.fake_nvml_outstanding_inits.restype = ctypes.c_int64
    control.fake_nvml_set_driver_version(b"580.1", 13000)
    return control


def share(nvml: ctypes.CDLL, *reasons: int, turns: int = 4) -> float:
    """Of so many turns, in each of which the next of these reasons is in force."""
    states: list[DeviceState] = []
    with DeviceSlowdown("cuda:0") as slowdown:
        for turn in range(turns):
            with slowdown.turn(states):
                nvml.fake_nvml_set_reading(0, b"throttle_reasons", reasons[turn % len(reasons)])
        found = slowdown.readings()[SLOWED]
    assert nvml.fake_nvml_outstanding_inits() == 0
    return found


@pytest.mark.parametrize("reason", [0x8, 0x20, 0x40, 0x80, 0x40 | 0x4])
def test_heat_power_brakes_and_slowdowns_by_the_device_count(nvml: ctypes.CDLL, reason: int) -> None:
    assert share(nvml, reason, 0) == pytest.approx(0.5)


@pytest.mark.parametrize("reason", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100])
def test_idling_locked_clocks_and_the_power_limit_do_not(nvml: ctypes.CDLL, reason: int) -> None:
    assert share(nvml, reason) == 0.0


@pytest.mark.parametrize(
    ("field", "driver", "counts"),
    [(THERMAL, 12040, 1), (POWER_BRAKE_SINCE_13, 13000, 1), (POWER_BRAKE_SINCE_13, 12040, 0)],
)
def test_counters_find_what_no_look_between_turns_saw(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, field: int, driver: int, counts: int
) -> None:
    """The counter grows by half a second in each second of the fake, whose clock the test turns by one second."""
    nvml.fake_nvml_set_driver_version(b"1", driver)
    nvml.fake_nvml_set_field(0, field, UNSIGNED_LONG_LONG, 7, SECOND_NS // 2, 0)
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    with DeviceSlowdown("cuda:0") as slowdown:
        nvml.fake_nvml_advance(SECOND_NS)
        now_s[0] += 1.0
        found = slowdown.readings()[SLOWED]
    assert found == pytest.approx(0.5 * counts)
    assert (found > MOST_SLOWED) is bool(counts)


def test_the_state_before_the_first_turn_and_after_the_last_is_kept(nvml: ctypes.CDLL) -> None:
    states: list[DeviceState] = []
    with DeviceSlowdown("cuda:0") as slowdown:
        for number in range(3):
            nvml.fake_nvml_set_reading(0, b"sm_mhz", 1000 + number)
            with slowdown.turn(states):
                nvml.fake_nvml_set_reading(0, b"sm_mhz", 1500 + number)
                nvml.fake_nvml_set_reading(0, b"temperature_c", 60 + number)
                nvml.fake_nvml_power_constant(0, 350_000.0)
    assert [state.sm_mhz for state in states] == [1000, 1502]
    assert states[1].temperature_c == 62
    assert states[1].power_w == pytest.approx(350.0)


BOARDS = {"cuda:0": Board(1), "cuda:1": Board(0)}


def test_of_several_gpus_each_has_its_state_and_the_one_that_was_slowed_down_most_counts(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.fake_nvml_set_device_count(2)
    monkeypatch.setattr(device_slowdown, "board_of", BOARDS.__getitem__)
    states: list[DeviceState] = []
    with DeviceSlowdown("cuda:0,cuda:1") as slowdown:
        for reasons in (0x40, 0x0, 0x0, 0x0):
            with slowdown.turn(states):
                nvml.fake_nvml_set_reading(0, b"throttle_reasons", reasons)
                nvml.fake_nvml_set_reading(1, b"sm_mhz", 1410)
        found = slowdown.readings()
    assert found == {SLOWED: pytest.approx(0.25)}
    assert [(state.device, state.sensor, state.sm_mhz) for state in states] == [
        ("cuda:0", "nvml:1", 1980),
        ("cuda:1", "nvml:0", 1980),
        ("cuda:0", "nvml:1", 1410),
        ("cuda:1", "nvml:0", 1980),
    ]


def test_nearly_full_memory_of_any_gpu_is_a_warning(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.fake_nvml_set_device_count(2)
    monkeypatch.setattr(device_slowdown, "board_of", BOARDS.__getitem__)
    for full_before, warns in ((False, True), (True, False)):
        states: list[DeviceState] = []
        nvml.fake_nvml_set_reading(1, b"memory_used", 2**30 * (15 if full_before else 1))
        with DeviceSlowdown("cuda:0,cuda:1") as slowdown, slowdown.turn(states):
            nvml.fake_nvml_set_reading(1, b"memory_used", 2**30 * (1 if full_before else 15))
        assert [notice.code for notice in full_memory(states)] == ["W_GPU_MEMORY"] * warns


def test_a_processor_and_an_instance_of_a_divided_device_are_not_read(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_slowdown, "board_of", lambda _: Board(0, "MIG-1"))
    for device in ("cpu", "cuda:0"):
        states: list[DeviceState] = []
        with DeviceSlowdown(device) as slowdown, slowdown.turn(states):
            pass
        assert (states, slowdown.readings()) == ([], {})


@pytest.mark.parametrize(("used_gib", "warns"), [(14.3, False), (14.5, True)])
def test_memory_that_is_nearly_full_is_a_warning(nvml: ctypes.CDLL, used_gib: float, warns: bool) -> None:
    """The fake device has 16 GiB."""
    states: list[DeviceState] = []
    with DeviceSlowdown("cuda:0") as slowdown, slowdown.turn(states):
        nvml.fake_nvml_set_reading(0, b"memory_used", int(used_gib * 2**30))
    assert [notice.code for notice in full_memory(states)] == ["W_GPU_MEMORY"] * warns
