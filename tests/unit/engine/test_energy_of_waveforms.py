"""Energy of power whose course is known exactly, through the sources and the ring, on the fake NVML's own clock."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.engine._native import Readings
from fairlap.engine.sampling.energy import power_between_ticks
from fairlap.engine.sampling.joules import Energy
from fairlap.engine.sampling.region_energy import energy_of_counter, energy_of_power, rows_of
from fairlap.engine.sampling.telemetry import Sampler

_FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[3] / "build/release/cpp/fakes"))
_PATH = str(_FAKES / "libfairlap_fake_nvml.so")
_MS = 1_000_000
_SECOND = 1000 * _MS
_NEVER_S = 1000.0

Rows = npt.NDArray[np.void]


@pytest.fixture
def fake() -> Iterator[ctypes.CDLL]:
    assert Path(_PATH).exists(), f"{_PATH} is missing; `make test` builds it"
    fake = ctypes.CDLL(_PATH)
    fake.fake_nvml_now_ns.restype = ctypes.c_int64
    fake.fake_nvml_advance.argtypes = [ctypes.c_int64]
    fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, ctypes.c_double]
    fake.fake_nvml_power_point.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_int]
    fake.fake_nvml_power_sensor.argtypes = [ctypes.c_int, *[ctypes.c_int64] * 4]
    fake.fake_nvml_reset()
    yield fake
    fake.fake_nvml_reset()


class Watched:
    """What a sampler reads at its start and at its stop, between which the fake's clock moves."""

    def __init__(self, fake: ctypes.CDLL, root: Path) -> None:
        self._fake = fake
        periods = {"fast_period_s": _NEVER_S, "slow_period_s": _NEVER_S, "rare_period_s": _NEVER_S}
        self.sampler = Sampler(nvml_library=_PATH, root=root, call_share=1.0, **periods)  # type: ignore[arg-type]
        self._read: list[Rows] = []

    def look(self) -> None:
        (self.sampler.stop if self.sampler.running else self.sampler.start)()
        rows = np.asarray(self.sampler.collect()).copy()
        rows["time_ns"] = self._fake.fake_nvml_now_ns()
        self._read.append(rows)

    def run(self, length_ns: int, every_ns: int) -> None:
        end_ns = self._fake.fake_nvml_now_ns() + length_ns
        while self._fake.fake_nvml_now_ns() < end_ns:
            self.look()
            self._fake.fake_nvml_advance(every_ns)
        self.look()
        self.sampler.stop()

    def rows(self, source: str, field: str) -> Rows:
        source_number, field_number, _ = self.sampler.number_of(source, field)
        return rows_of(cast(Readings, np.concatenate(self._read)), source_number, field_number)

    def power(self, begin_ns: int, end_ns: int, device: int = 0, stale_ns: int = 0) -> Energy:
        return energy_of_power(self.rows(f"nvml:{device}", "power_instant_w"), begin_ns, end_ns, stale_ns=stale_ns)

    def counted(self, begin_ns: int, end_ns: int, device: int = 0) -> Energy:
        return energy_of_counter(self.rows(f"nvml:{device}", "energy_j"), begin_ns, end_ns, 0.0)


def perfect_sensor(fake: ctypes.CDLL, device: int) -> None:
    """Be new at every look, and of this very moment."""
    fake.fake_nvml_power_sensor(device, 1, 0, 0, _SECOND)


def assert_holds(energy: Energy, exact_j: float) -> None:
    assert energy.low_j is not None
    assert energy.high_j is not None
    assert energy.low_j <= exact_j <= energy.high_j, energy


def test_the_integrals_of_a_constant_a_ramp_and_a_saw_are_exact(fake: ctypes.CDLL, tmp_path: Path) -> None:
    fake.fake_nvml_set_device_count(3)
    fake.fake_nvml_power_constant(0, 250_000)
    fake.fake_nvml_power_constant(1, 100_000)
    fake.fake_nvml_power_point(1, 0, 100_000, 0)
    fake.fake_nvml_power_point(1, 10 * _SECOND, 400_000, 1)
    fake.fake_nvml_power_constant(2, 50_000)
    for tooth in range(10):
        fake.fake_nvml_power_point(2, tooth * _SECOND, 50_000, int(tooth > 0))
        fake.fake_nvml_power_point(2, tooth * _SECOND + 500 * _MS, 350_000, 1)
    for device in range(3):
        perfect_sensor(fake, device)
    watched = Watched(fake, tmp_path)
    watched.run(9 * _SECOND, 25 * _MS)
    for device, exact_j in enumerate((250.0 * 6, (160.0 + 340.0) / 2 * 6, 200.0 * 6)):
        energy = watched.power(2 * _SECOND, 8 * _SECOND, device)
        assert energy.unresolved_because == ""
        assert energy.joules == pytest.approx(exact_j, abs=0.0006 * 6)  # power is reported in whole milliwatts
        counted = watched.counted(2 * _SECOND, 8 * _SECOND, device)
        assert_holds(counted, exact_j)
        assert counted.joules == pytest.approx(energy.joules, rel=0.02)


@pytest.mark.parametrize("phase_ms", [0, 17, 55, 83])
def test_a_square_waves_integral_is_wrong_by_no_more_than_its_interval_allows(
    fake: ctypes.CDLL, tmp_path: Path, phase_ms: int
) -> None:
    fake.fake_nvml_power_constant(0, 60_000)
    for turn in range(20):
        fake.fake_nvml_power_point(0, turn * 700 * _MS, 300_000, 0)
        fake.fake_nvml_power_point(0, turn * 700 * _MS + 400 * _MS, 60_000, 0)
    fake.fake_nvml_power_sensor(0, 100 * _MS, phase_ms * _MS, 25 * _MS, _SECOND)
    watched = Watched(fake, tmp_path)
    watched.run(8 * _SECOND, 25 * _MS)
    exact_j = 9 * (300 * 0.4 + 60 * 0.3)  # nine whole turns
    energy = watched.power(700 * _MS, 7000 * _MS, stale_ns=125 * _MS)
    assert energy.unresolved_because == ""
    assert_holds(energy, exact_j)
    assert_holds(watched.counted(700 * _MS, 7000 * _MS), exact_j)


@pytest.mark.parametrize("look_ms", [5, 20, 25])
def test_what_a_counter_sees_between_ticks_is_bounded_by_how_often_it_is_looked_at(
    fake: ctypes.CDLL, tmp_path: Path, look_ms: int
) -> None:
    fake.fake_nvml_power_constant(0, 180_000)
    watched = Watched(fake, tmp_path)
    watched.run(4 * _SECOND, look_ms * _MS)
    power = power_between_ticks(watched.rows("nvml:0", "energy_j"), 330 * _MS, 3330 * _MS, 0.0)
    assert abs(power.watts - 180) <= 180 * power.uncertainty_share
    assert power.uncertainty_share <= look_ms / 2700


def test_a_packages_counter_that_wraps_gives_the_energy_over_the_wrap(fake: ctypes.CDLL, tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("99999999\n")  # it wraps at 100 J
    (zone / "energy_uj").write_text("0\n")
    watched = Watched(fake, tmp_path)
    for ms in range(0, 6000, 10):  # 70 W, from 63 J on
        (zone / "energy_uj").write_text(f"{(63_000_000 + ms * 70_000) % 100_000_000}\n")
        watched.look()
        fake.fake_nvml_advance(10 * _MS)
    field = "intel-rapl:0 package-0 energy_j"
    wraps_at = watched.sampler.number_of("powercap", field)[2].wraps_at
    energy = energy_of_counter(watched.rows("powercap", field), _SECOND, 5 * _SECOND, wraps_at)
    assert energy.unresolved_because == ""
    assert energy.joules == pytest.approx(280, abs=0.01)


def test_of_eight_devices_one_is_lost_and_one_unplugged_and_the_other_six_are_whole(
    fake: ctypes.CDLL, tmp_path: Path
) -> None:
    fake.fake_nvml_set_device_count(8)
    for device in range(8):
        fake.fake_nvml_power_constant(device, 100_000 + 10_000 * device)
        perfect_sensor(fake, device)
    watched = Watched(fake, tmp_path)
    watched.run(3 * _SECOND, 25 * _MS)
    fake.fake_nvml_lose_gpu(2)
    fake.fake_nvml_unplug(5)
    watched.run(3 * _SECOND, 25 * _MS)
    assert watched.sampler.counts["overflowed_readings"] == 0
    for device in range(8):
        watts = 100 + 10 * device
        assert watched.power(_SECOND, 2 * _SECOND, device).joules == pytest.approx(watts, abs=1e-6)
        energy = watched.power(_SECOND, 5 * _SECOND, device)
        if device in {2, 5}:
            assert "was lost" in energy.unresolved_because
            assert energy.joules is None
        else:
            assert energy.joules == pytest.approx(4 * watts, abs=1e-6)
