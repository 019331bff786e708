"""The readings of all sensors, interval by interval, from a machine made of files and the fake NVML."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fairlap.watch.gpu_metrics import GPU_METRICS
from fairlap.watch.readings import ReadingsNow
from fairlap.watch.series import Series
from watched_machine import NO_NVML, WatchedMachine, fake_nvml_path, fresh_fake_nvml, next_interval

INTERVAL_S = 0.1


@pytest.fixture
def machine(tmp_path: Path) -> WatchedMachine:
    return WatchedMachine(tmp_path)


def one(readings: ReadingsNow, name: str, **labels: str) -> Series:
    found = [each for each in readings.series if each.metric.name == name and labels.items() <= each.labels.items()]
    assert len(found) == 1, [each.labels for each in found]
    return found[0]


def test_energy_of_the_processor_becomes_power(machine: WatchedMachine) -> None:
    began_s = time.monotonic()
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=NO_NVML) as readings:
        machine.energy_uj(15_000_000)
        next_interval(readings)
        took_s = time.monotonic() - began_s
    energy = one(readings, "cpu_energy_joules")
    assert energy.labels == {"source": "powercap", "device": "intel-rapl:0 package-0"}
    assert energy.value == pytest.approx(15.0)
    assert energy.per_second is not None
    assert energy.per_second > 10.0 / took_s  # its readings are closer together than that
    assert energy.metric.row == "power package-0"


def test_steal_and_pressure_are_shares_of_time_and_memory_is_bytes(machine: WatchedMachine) -> None:
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=NO_NVML) as readings:
        next_interval(readings)
        assert one(readings, "cpu_stolen_seconds").per_second == 0.0
        machine.stolen_ticks(800)
        machine.waited_s("memory", 2.5)
        next_interval(readings)
    assert one(readings, "cpu_stolen_seconds").value == pytest.approx(8.0)
    assert (one(readings, "cpu_stolen_seconds").per_second or 0.0) > 0.0
    assert one(readings, "pressure_full_seconds", resource="memory").value == pytest.approx(2.5)
    assert one(readings, "pressure_some_seconds", resource="cpu").per_second == 0.0
    assert one(readings, "memory_used_bytes").value == 4 * 1024**3
    assert one(readings, "memory_size_bytes").value == 16 * 1024**3


def test_what_is_absent_has_no_series_but_a_reason(machine: WatchedMachine) -> None:
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=NO_NVML) as readings:
        next_interval(readings)
    why = {absence.what: absence.why for absence in readings.absences()}
    absent = {"nvml", "cpu_frequency", "thermal", "control_group"}
    assert all(why[source] for source in absent)
    assert readings.sources["powercap"] == ""
    assert not {each.labels["source"] for each in readings.series} & absent


def test_each_gpu_has_power_clocks_memory_and_reasons_of_its_clock(machine: WatchedMachine) -> None:
    fake = fresh_fake_nvml()
    fake.fake_nvml_set_device_count(2)
    fake.fake_nvml_power_constant(1, 250_000.0)
    fake.fake_nvml_set_reading(1, b"throttle_reasons", 0x4)
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=fake_nvml_path()) as readings:
        next_interval(readings)
    assert one(readings, "gpu_power_watts", device="0").value == 100.0
    assert one(readings, "gpu_power_watts", device="1").value == 250.0
    assert one(readings, "gpu_sm_clock_hertz", device="1").value == 1980e6
    assert one(readings, "gpu_memory_used_bytes", device="0").value == 1024**3
    assert one(readings, "gpu_clock_limited", device="1", reason="power_cap").value == 1.0
    assert one(readings, "gpu_clock_limited", device="0", reason="power_cap").value == 0.0
    assert [each.group for each in readings.series][:1] == ["GPU 0"]
    lacking = next(absence for absence in readings.absences() if absence.source == "nvml:0")
    assert "gpu_memory_temperature_celsius" in lacking.metrics
    assert lacking.summary.endswith("more")


def test_a_lost_gpu_shows_no_number(machine: WatchedMachine) -> None:
    fake = fresh_fake_nvml()
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=fake_nvml_path()) as readings:
        next_interval(readings)
        assert one(readings, "gpu_power_watts").value == 100.0
        fake.fake_nvml_lose_gpu(0)
        next_interval(readings)
        next_interval(readings)
    power = one(readings, "gpu_power_watts")
    assert power.value is None
    assert "gone" in power.absent
    assert any("gpu_power_watts" in absence.metrics for absence in readings.absences())


def test_the_sampler_has_every_field_of_the_table(machine: WatchedMachine) -> None:
    fresh_fake_nvml()
    readings = ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=fake_nvml_path())
    gpu = next(source for source in readings.sampler.sources if source.name == "nvml:0")
    assert {metric.field for metric in GPU_METRICS} <= {field.name for field in gpu.fields}


def test_a_file_that_becomes_unreadable_is_absent(machine: WatchedMachine) -> None:
    with ReadingsNow(INTERVAL_S, root=machine.root, nvml_library=NO_NVML) as readings:
        next_interval(readings)
        (Path(machine.root) / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("")
        (Path(machine.root) / "proc/meminfo").write_text("")
        next_interval(readings)
        next_interval(readings)
    assert one(readings, "cpu_energy_joules").absent
    assert "/proc/meminfo" in one(readings, "memory_used_bytes").absent
