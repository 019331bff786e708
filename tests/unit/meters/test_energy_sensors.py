"""Which sensors make up the energy of work: none twice, none left out; and what their peak is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from fairlap.engine._native import TelemetrySource
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters.energy import peak_power_w
from fairlap.meters.energy_sensors import sensors_for

FIRST = Board(0)


def source(name: str, fields: dict[str, str], absent: str = "") -> TelemetrySource:
    """Fields by name, with the reason why each is absent."""
    listed = [SimpleNamespace(name=field, absent_because=why, counter=True) for field, why in fields.items()]
    return cast(TelemetrySource, SimpleNamespace(name=name, absent_because=absent, fields=listed))


def zones(*names: str, forbidden: str = "") -> TelemetrySource:
    return source("powercap", {f"{name} energy_j": "root only" if name == forbidden else "" for name in names})


def names(device: str, *sources: TelemetrySource, board: Board | str = FIRST) -> list[str] | str:
    found, reason = sensors_for(device, sources, board)
    assert bool(found) != bool(reason)
    return [sensor.name for sensor in found] or reason


BOARD = {"power_instant_w": "", "energy_j": "", "temperature_c": ""}
NO_NVML = source("nvml", {}, "no driver")


def test_packages_and_memory_count_but_not_their_parts() -> None:
    powercap = zones("intel-rapl:0 package-0", "intel-rapl:0:0 core", "intel-rapl:0:1 dram", "intel-rapl:1 package-1")
    assert names("cpu", NO_NVML, powercap) == [
        "powercap intel-rapl:0 package-0",
        "powercap intel-rapl:0:1 dram",
        "powercap intel-rapl:1 package-1",
    ]


def test_a_package_that_appears_twice_is_counted_once() -> None:
    twice = zones("intel-rapl-mmio:0 package-0", "intel-rapl:0 package-0", "intel-rapl:1 psys")
    assert names("cpu", twice) == ["powercap intel-rapl:0 package-0"]
    assert names("cpu", zones("intel-rapl-mmio:0 package-0")) == ["powercap intel-rapl-mmio:0 package-0"]


def test_a_sum_without_one_of_the_packages_is_absent() -> None:
    powercap = zones("intel-rapl:0 package-0", "intel-rapl:1 package-1", forbidden="intel-rapl:1 package-1")
    assert names("cpu", powercap) == "root only"


def test_a_machine_without_counters_of_its_processor_has_a_reason() -> None:
    assert names("cpu", source("powercap", {}, "hidden here")) == "hidden here"
    assert "psys" in names("cpu", zones("intel-rapl:1 psys"))
    assert isinstance(names("cpu"), str)


def perf(*events: str, absent: str = "", forbidden: str = "") -> TelemetrySource:
    return source("perf_energy", {f"{e} energy_j": "root only" if e == forbidden else "" for e in events}, absent)


def test_where_powercap_cannot_be_read_perf_events_count_packages_and_memory() -> None:
    closed = source("powercap", {}, "root only")
    events = perf("energy-cores cpu0", "energy-pkg cpu0", "energy-pkg cpu8", "energy-ram cpu0")
    assert names("cpu", closed, events) == ["perf energy-pkg cpu0", "perf energy-pkg cpu8", "perf energy-ram cpu0"]
    assert names("cpu", zones("intel-rapl:0 package-0"), events) == ["powercap intel-rapl:0 package-0"]
    assert "root only; perf" in names("cpu", closed, perf("energy-cores cpu0"))
    assert names("cpu", closed, perf(absent="not allowed")) == "root only; not allowed"
    both = perf("energy-pkg cpu0", "energy-pkg cpu8", forbidden="energy-pkg cpu8")
    assert names("cpu", closed, both) == "root only; root only"


def test_work_on_a_board_counts_the_board_and_the_processor_where_it_can_be_read() -> None:
    powercap = zones("intel-rapl:0 package-0")
    board = source("nvml:0", BOARD)
    assert names("cuda:0", board, powercap) == ["nvml:0", "powercap intel-rapl:0 package-0"]
    assert names("cuda:0", board, source("powercap", {}, "hidden")) == ["nvml:0"]
    assert names("cuda:0", NO_NVML, powercap) == "no driver"
    assert names("cpu", board, powercap) == ["powercap intel-rapl:0 package-0"]
    [sensor] = sensors_for("cuda:0", [board], Board(0))[0]
    assert sensor.fields == ("energy_j", "power_instant_w")


def test_one_of_several_boards_is_read_only_when_it_can_be_identified() -> None:
    boards = [source(f"nvml:{number}", BOARD) for number in range(2)]
    assert names("cuda:0", *boards, board=Board(1)) == ["nvml:1"]
    assert names("cuda:0", *boards, board="the driver is silent") == "the driver is silent"


def test_an_instance_of_a_mig_device_has_no_energy_of_its_own() -> None:
    assert "MIG" in names("cuda:0", source("nvml:0", BOARD), board=Board(0, "MIG-1"))


def test_a_board_without_power_and_energy_has_the_reason() -> None:
    mute = source("nvml:0", {"power_instant_w": "not supported", "energy_j": "not supported"})
    assert "not supported" in names("cuda:0", mute)


MS = 1_000_000


def test_of_a_power_sensor_the_highest_reading_counts() -> None:
    assert peak_power_w(np.array([0, 1, 2]) * MS, np.array([80.0, 120.0, 90.0]), counter=False) == 120.0
    assert peak_power_w(np.array([]), np.array([]), counter=False) is None


def test_of_a_counter_the_steepest_rise_over_fifty_milliseconds_counts() -> None:
    times = np.arange(0, 400, 25) * MS
    watts = np.where(times < 200 * MS, 40.0, 100.0)
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * 0.025)])
    assert peak_power_w(times, joules, counter=True) == pytest.approx(100.0)
    joules[8] += 1.0  # one reading late by a step of the counter: 40 W more over 25 ms, 20 W over 50 ms
    steep = peak_power_w(times, joules, counter=True)
    assert steep is not None
    assert steep < 130


def test_a_counter_that_wraps_rises_on() -> None:
    times, joules = np.array([0, 60, 120]) * MS, np.array([98.0, 4.0, 10.0])
    assert peak_power_w(times, joules, counter=True, wraps_at=100.0) == pytest.approx(100.0)


def test_too_few_readings_give_no_peak() -> None:
    assert peak_power_w(np.array([0, 20]) * MS, np.array([1.0, 2.0]), counter=True) is None
