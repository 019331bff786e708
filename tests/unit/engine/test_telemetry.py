"""The sampler from Python: the fake NVML and a folder that stands in for the machine."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.engine.sampling import telemetry
from fairlap.errors import InvalidRequest, NotAvailable
from processes_seen import wait_until

_FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[3] / "build/release/cpp/fakes"))


@pytest.fixture
def fake_nvml() -> ctypes.CDLL:
    library = _FAKES / "libfairlap_fake_nvml.so"
    assert library.exists(), f"{library} is missing; `make test` builds it"
    fake = ctypes.CDLL(str(library))
    fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, ctypes.c_double]
    fake.fake_nvml_reset()
    return fake


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Make a machine with one RAPL package and nothing else."""
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("5000000\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    return tmp_path


def test_absent_sources_say_why(machine: Path) -> None:
    sampler = telemetry.Sampler(root=str(machine), nvml_library="/nowhere/nvml.so")
    absent = {source.name: source.absent_because for source in sampler.sources}
    assert absent["powercap"] == ""
    assert "/nowhere/nvml.so could not be loaded" in absent["nvml"]
    assert "powercap" in absent["perf_energy"]
    with pytest.raises(NotAvailable, match=r"nvml .*/nowhere"):
        sampler.energy(sampler.collect(), "nvml", "energy_j", 0, 1)


def test_readings_are_a_table_without_a_copy(machine: Path) -> None:
    with telemetry.Sampler(
        root=str(machine), nvml_library="/nowhere/nvml.so", fast_period_s=0.001, call_share=1.0
    ) as sampler:
        assert sampler.running
        wait_until(lambda: sampler.counts["rounds"] >= 3)
    assert not sampler.running
    readings = sampler.collect()
    table = np.asarray(readings)
    assert len(table) == len(readings) == sampler.counts["rounds"]
    assert set(table["value"]) == {5.0}
    assert (np.diff(table["time_ns"]) > 0).all()
    assert not table.flags.owndata
    assert not table.flags.writeable
    assert len(sampler.collect()) == 0


def test_the_energy_between_two_marks_is_power_times_time(fake_nvml: ctypes.CDLL) -> None:
    fake_nvml.fake_nvml_power_constant(0, 250_000.0)
    path = str(_FAKES / "libfairlap_fake_nvml.so")
    with telemetry.Sampler(nvml_library=path, fast_period_s=0.002, slow_period_s=0.01) as sampler:
        begin_ns = sampler.mark(1)
        time.sleep(0.05)
        end_ns = sampler.mark(2)
    assert sampler.collect_marks() == [(begin_ns, 1), (end_ns, 2)]
    readings = sampler.collect()
    energy = sampler.energy(readings, "nvml:0", "power_instant_w", begin_ns, end_ns, gain_share=0.05)
    exact_j = 250.0 * (end_ns - begin_ns) / 1e9
    assert energy.joules == pytest.approx(exact_j)
    assert energy.low_j == pytest.approx(0.95 * exact_j)
    assert energy.high_j == pytest.approx(1.05 * exact_j)
    # The fake's own clock stands still, and so does its counter.
    unknown = sampler.energy(readings, "nvml:0", "energy_j", begin_ns, end_ns)
    assert unknown.joules is None
    assert "no step" in unknown.unresolved_because
    with pytest.raises(InvalidRequest, match="temperature_c"):
        sampler.energy(readings, "nvml:0", "temperature_c", begin_ns, end_ns)
    with pytest.raises(InvalidRequest, match="speed_w"):
        sampler.energy(readings, "nvml:0", "speed_w", begin_ns, end_ns)
    with pytest.raises(InvalidRequest, match="sun"):
        sampler.energy(readings, "sun", "power_w", begin_ns, end_ns)


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("fast_period_s", [0.0, 1e30, 1e-12, "x", 0.5]),
        ("slow_period_s", [0, "x", NAN, 2.0]),
        ("rare_period_s", [-1.0]),
        ("call_share", [0, "x"]),
        ("seed", [-1]),
        ("readings", [-1, 0]),
        ("marks", [2**24 + 1]),
        ("root", [5]),
        ("nvml_library", ["\0"]),
        ("clock", [5]),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_argument(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidRequest, match=f"^{name} ") as refused:
            telemetry.Sampler(**({"rare_period_s": 1.0} | {name: value}))
        assert len(str(refused.value)) < 200


@pytest.fixture
def sampler(machine: Path) -> telemetry.Sampler:
    return telemetry.Sampler(root=machine, nvml_library="/nowhere/nvml.so")


@pytest.mark.parametrize("seconds", ["x", 1e300, 0, NAN])
def test_a_calibration_of_a_wrong_length_is_refused(sampler: telemetry.Sampler, seconds: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^seconds "):
        sampler.calibration(seconds)


@pytest.mark.parametrize("label", ["x", -1, 2**64, 1.5])
def test_a_mark_with_a_wrong_label_is_refused(sampler: telemetry.Sampler, label: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^label "):
        sampler.mark(label)
    assert sampler.collect_marks() == []


@pytest.mark.parametrize(
    ("name", "value"), [("begin_ns", "x"), ("end_ns", 2**80), ("gain_share", "x"), ("stale_ns", 1.5), ("readings", 5)]
)
def test_a_wrong_value_for_an_energy_is_refused_with_its_name(
    sampler: telemetry.Sampler, name: str, value: Any
) -> None:
    field = next(field.name for source in sampler.sources if source.name == "powercap" for field in source.fields)
    right: dict[str, Any] = {"readings": sampler.collect(), "begin_ns": 0, "end_ns": 1}
    with pytest.raises(InvalidRequest, match=f"^{name} "):
        sampler.energy(source="powercap", field=field, **(right | {name: value}))


def test_the_text_of_a_code_that_is_none_is_refused(sampler: telemetry.Sampler) -> None:
    with pytest.raises(InvalidRequest, match=r"^source .*'x'"):
        sampler.text_of("x", 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"^code "):
        sampler.text_of(0, 2**40)


def test_a_forked_child_is_reported_to_make_its_own(machine: Path) -> None:
    with telemetry.Sampler(root=str(machine), nvml_library="/nowhere/nvml.so") as sampler:
        child = os.fork()
        if child == 0:
            try:
                sampler.collect()
            except NotAvailable:
                os._exit(0 if not sampler.running else 2)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert sampler.running
