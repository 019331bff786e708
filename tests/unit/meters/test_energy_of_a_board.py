"""The energy of a board whose power sensor looks during a quarter of the time.

On A100 and H100 it publishes every 100 ms the mean of the last 25 ms (arXiv 2312.02741, on part-time measurements).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np
import pytest
from fairlap.engine.sampling.joules import Energy
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import energy
from watched_machine import fake_nvml_path, fresh_fake_nvml

MS = 1_000_000
SEEN_W, UNSEEN_W, SEEN_MS = 100.0, 400.0, 30
TOTAL_ENERGY, NOT_SUPPORTED = 83, 3  # NVML's numbers
TRUE_W = (UNSEEN_W * (100 - SEEN_MS) + SEEN_W * SEEN_MS) / 100


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """Draw 400 W while the sensor does not look, and 100 W while it does."""
    fake = fresh_fake_nvml()
    fake.fake_nvml_now_ns.restype = ctypes.c_int64
    number, integer = ctypes.c_double, ctypes.c_int64
    fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, number]
    fake.fake_nvml_power_point.argtypes = [ctypes.c_int, integer, number, ctypes.c_int]
    fake.fake_nvml_power_sensor.argtypes = [ctypes.c_int, integer, integer, integer, integer]
    fake.fake_nvml_energy_counter.argtypes = [ctypes.c_int, ctypes.c_uint64, integer, ctypes.c_uint64]
    fake.fake_nvml_use_real_clock(1)
    fake.fake_nvml_power_sensor(0, 100 * MS, 0, 25 * MS, 1000 * MS)
    first = fake.fake_nvml_now_ns() // (100 * MS)
    for period in range(first, first + 60):
        fake.fake_nvml_power_point(0, period * 100 * MS, UNSEEN_W * 1e3, 0)
        fake.fake_nvml_power_point(0, (period * 100 + 100 - SEEN_MS) * MS, SEEN_W * 1e3, 0)
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(energy, "board_of", lambda device: Board(0))
    return fake


def energy_of(seconds: float) -> energy.EnergyRead:
    """Read it of the first seconds, however much longer a busy machine sleeps."""
    meter = energy.EnergyMeter("cuda:0")
    begin_ns = meter.begin()
    time.sleep(seconds)
    meter.end()
    read = meter.read(begin_ns, begin_ns + round(seconds * 1e9))
    return next(each for each in read if each.sensor == "nvml:0")


def test_the_counter_has_what_the_power_sensor_does_not_see(board: ctypes.CDLL) -> None:
    board.fake_nvml_energy_counter(0, 0, 20 * MS, 0)
    read = energy_of(0.6)
    assert read.joules == pytest.approx(TRUE_W * 0.6, rel=0.25)  # and not 100 W
    assert read.low_j is not None
    assert read.high_j is not None
    assert read.low_j <= TRUE_W * 0.6 <= read.high_j


@pytest.fixture
def expensive(board: ctypes.CDLL) -> ctypes.CDLL:
    """Make the counter as that of an H100 (docs/gpu-proof, part 5): 3 ms a reading, a step every 100 ms.

    The sampler then reads it every three seconds. The fake knows costs of functions alone, so it refuses the field.
    """
    board.fake_nvml_fail_field.argtypes = [ctypes.c_uint32, ctypes.c_int64, ctypes.c_int]
    board.fake_nvml_set_cost.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    board.fake_nvml_fail_field(TOTAL_ENERGY, 0, NOT_SUPPORTED)
    board.fake_nvml_set_cost(b"nvmlDeviceGetTotalEnergyConsumption", 3 * MS)
    board.fake_nvml_energy_counter(0, 0, 100 * MS, 0)
    return board


class ReadAtEnds:
    """In place of the counter, whose readings take as long as a busy machine lets them."""

    def __init__(self, index: int, now_ns: Callable[[], int]) -> None:
        self.index, self.done = index, list[str]()

    def before(self) -> None:
        self.done.append("before")

    def after(self) -> None:
        self.done.append("after")

    def energy(self, begin_ns: int, end_ns: int, whole_begin_ns: int, whole_end_ns: int) -> Energy:
        assert (self.index, self.done) == (0, ["before", "after"])
        assert whole_begin_ns <= begin_ns < end_ns <= whole_end_ns
        return Energy(5000.0, 4800.0, 5200.0, "", 0)


def test_a_counter_that_is_expensive_to_read_is_read_at_both_ends(
    expensive: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "CounterAtEnds", ReadAtEnds)
    read = energy_of(0.1)
    assert read.joules == 5000.0
    assert read.high_j == pytest.approx(5200 * 1.05)  # a gain that may be wrong is in it


def test_a_counter_that_is_cheap_to_read_is_read_meanwhile(board: ctypes.CDLL) -> None:
    board.fake_nvml_energy_counter(0, 0, 20 * MS, 0)
    assert not energy.EnergyMeter("cuda:0")._at_ends


def test_the_clock_is_the_mean_of_what_was_read_meanwhile(board: ctypes.CDLL) -> None:
    meter = energy.EnergyMeter("cuda:0")
    board.fake_nvml_set_reading(0, b"sm_mhz", 1755)
    begin_ns = meter.begin()
    time.sleep(0.3)
    end_ns = meter.end()
    meter.read_somewhere_in(begin_ns, end_ns, end_ns - begin_ns)
    assert (meter.device_sm_mhz, meter.device_slowed_share) == (1755.0, 0.0)


def test_a_region_that_the_sensor_may_have_slept_through_has_no_figure(board: ctypes.CDLL) -> None:
    board.fake_nvml_energy_counter(0, 0, 60_000 * MS, 0)
    read = energy_of(0.03)
    assert read.joules is None
    assert "may have seen none of it" in read.why


def test_of_several_boards_the_energies_add_up_and_each_has_its_clock(
    board: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.fake_nvml_set_device_count(2)
    board.fake_nvml_use_real_clock(1)
    monkeypatch.setattr(energy, "board_of", lambda device: Board(int(device[-1])))
    for number, watts in ((0, 100.0), (1, 300.0)):
        board.fake_nvml_power_constant(number, watts * 1e3)
        board.fake_nvml_energy_counter(number, 0, 20 * MS, 0)
        board.fake_nvml_set_reading(number, b"sm_mhz", 1000 + number)
        board.fake_nvml_set_reading(number, b"throttle_reasons", 0x40 * number)
    meter = energy.EnergyMeter("cuda:0,cuda:1")
    begin_ns = meter.begin()
    time.sleep(0.6)
    meter.end()
    read = meter.read_somewhere_in(begin_ns, begin_ns + 600 * MS, 600 * MS)
    joules = {each.sensor: each.joules for each in read if each.sensor.startswith("nvml")}
    assert joules["nvml:0"] == pytest.approx(60.0, rel=0.25)
    assert joules["nvml:1"] == pytest.approx(180.0, rel=0.25)
    assert (meter.device_sm_mhz, meter.sm_mhz_by_sensor) == (None, {"nvml:0": 1000.0, "nvml:1": 1001.0})
    assert meter.device_slowed_share == 1.0
    percents = {"nvml:0": np.array([30.0, 50.0]), "nvml:1": np.array([60.0])}
    monkeypatch.setattr(meter, "_of_boards", lambda _, name, *__: percents if name == "utilisation_percent" else {})
    meter.read_somewhere_in(begin_ns, begin_ns + 600 * MS, 600 * MS)
    assert meter.device_busy_share == pytest.approx(0.5)
