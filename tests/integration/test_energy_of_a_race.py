"""Energy from sensors to rows, tables, files and pages.

Counters are driven by another process, and a board has a known power.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_installed import install_example
from fairlap import quantity_text
from fairlap.meters import energy
from fairlap.meters.device_slowdown import SLOWED
from fairlap.meters.stolen_time import E_GPU_THROTTLED
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.processes import repeated_processes
from fairlap.race.run import Run
from fairlap.race.stolen_time import stolen_time
from fairlap.render.outputs import read_rows
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.runs.run_file import load_run
from gpu_in_workers import IN_USE, put_gpu_into_workers
from machine_marks import needs_proc
from numpy_trainer import install_numpy_trainer
from small_races import run_race, small_plan
from started_by_fairlap import planted
from stream_races import file_of_prompts
from watched_machine import fresh_fake_nvml

METERED = Path(__file__).parent / "metered"
PACKAGE, MEMORY = "powercap intel-rapl:0 package-0", "powercap intel-rapl:0:1 dram"
BUSY_W, IDLE_W = 100.0 + 8.0, 40.0 + 8.0  # of powercap_meter.py, memory with it

pytestmark = needs_proc


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Describe a machine with energy counters by the environment of a race on it."""
    busy = tmp_path / "busy"
    command = [sys.executable, str(METERED / "powercap_meter.py"), str(tmp_path / "machine"), str(busy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as meter:
        assert meter.stdout is not None
        assert meter.stdout.readline() == b"ready\n"
        yield {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(METERED), os.environ.get("PYTHONPATH", "")])),
            "FAIRLAP_TEST_BUSY": str(busy),
            "FAIRLAP_SENSOR_ROOT": str(tmp_path / "machine"),
            "FAIRLAP_CACHE": str(tmp_path / "cache"),
        }
        meter.kill()


@pytest.mark.slow
def test_the_energy_of_a_race_is_in_rows_tables_files_and_pages(metered: dict[str, str], tmp_path: Path) -> None:
    asked = ["compare", "callable", "--on", "python:call=metered_work.work", "--blocks", "2", "--seconds", "0.4"]
    files = ["-o", "run.json", "-o", "rows.csv", "-o", "page.html", "-o", "rows.md"]
    command = [sys.executable, "-m", "fairlap", *asked, *files, "--conditions", "as-found", "--threads", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=metered)
    assert ran.returncode == 0, ran.stderr
    for process in load_run(tmp_path / "run.json").processes:
        _require_exact_joules(process, float((tmp_path / "machine/late_s").read_text()))
    [row] = read_rows(tmp_path / "rows.csv")
    power, idle, energy = row.mean_power_w, row.idle_power_w, row.energy_per_item_j
    assert power is not None
    assert power.low is not None
    assert power.high is not None
    assert power.low <= BUSY_W <= power.high
    assert power.value == pytest.approx(BUSY_W, rel=0.2)
    assert row.peak_power_w is not None
    assert row.peak_power_w.value >= 0.8 * power.value
    assert idle is not None
    assert idle.value == pytest.approx(IDLE_W, rel=0.2)
    assert energy is not None
    assert row.idle_energy_per_item_j is not None
    assert energy.value / row.idle_energy_per_item_j.value == pytest.approx(power.value / idle.value, rel=0.1)
    assert set(row.energy_by_sensor_j) == {PACKAGE, MEMORY}  # no part of the package, and the package once
    assert sum(row.energy_by_sensor_j.values()) == pytest.approx(energy.value, rel=0.2)
    assert f"{power.value:.3g} W" in ran.stdout
    assert "energy" in (tmp_path / "rows.md").read_text()
    assert "Energy for one item." in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_the_energy_of_a_started_server_is_that_of_its_turns(metered: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("httpx", reason="`make test` installs it and runs this")
    asked = ["load", str(file_of_prompts(tmp_path)), "--on", planted("--first-ms", 60), "--tokens", "8", "--rate", "20"]
    options = ["--trial", "1s", "--blocks", "2", "--seed", "1", "--no-store", "-o", "rows.csv"]
    command = [sys.executable, "-m", "fairlap", *asked, *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=metered)
    assert ran.returncode == 0, ran.stderr
    [row] = read_rows(tmp_path / "rows.csv")
    power, idle, energy = row.mean_power_w, row.idle_power_w, row.energy_per_item_j
    assert power is not None
    assert idle is not None
    assert energy is not None, row.absent["energy_per_item_j"]
    assert power.value == pytest.approx(IDLE_W, rel=0.2)  # of the meter, which knows nothing of the server
    assert idle.value == pytest.approx(IDLE_W, rel=0.2)
    assert energy.value == pytest.approx(power.value / 20, rel=0.5)  # 20 answers a second, drawn at random
    assert set(row.energy_by_sensor_j) == {PACKAGE, MEMORY}


@pytest.mark.slow
def test_the_energy_to_a_score_is_read_in_the_epochs(
    metered: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    install_numpy_trainer(tmp_path / "installed", monkeypatch)
    asked = ["compare", "digits", "--on", "numpy-trainer", "--mode", "train", "--batch", "32", "--blocks", "1"]
    options = ["--to-score", "20%", "--epochs", "3", "--seconds", "0.05s", "--threads", "1", "--no-store"]
    command = [sys.executable, "-m", "fairlap", *asked, *options, "-o", "run.json", "-o", "rows.csv"]
    environment = {**metered, "PYTHONPATH": os.pathsep.join([metered["PYTHONPATH"], os.environ["PYTHONPATH"]])}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr
    [row] = read_rows(tmp_path / "rows.csv")
    energy, time = row.energy_to_score_j, row.time_to_score_s
    assert energy is not None, row.absent["energy_to_score_j"]
    assert time is not None
    [process] = json.loads((tmp_path / "run.json").read_text())["processes"]
    parts = [part for each in process["learning"]["evaluations"] for part in each["energy"]]
    read_s = sum(part["seconds"] for part in parts)
    assert read_s >= time.value  # longer where the process waited for a core between reading the meter and training
    expected_j, late_j = IDLE_W * read_s, IDLE_W * float((tmp_path / "machine/late_s").read_text())
    assert energy.value == pytest.approx(expected_j, abs=0.2 * expected_j + late_j)
    assert energy.low is not None
    assert energy.high is not None
    assert energy.low - late_j <= expected_j <= energy.high + late_j
    assert f"{quantity_text.number(energy.value)} J" in ran.stdout


def _require_exact_joules(process: ProcessResult, late_s: float) -> None:
    """Require the energy drawn in timed calls in the reported interval, except for what the meter published late."""
    assert process.outcome == "finished", process.message
    assert process.energy is not None
    timed = process.headline
    assert process.energy.calls == timed.samples * timed.calls_per_sample
    by_sensor = {each.sensor: each for each in process.energy.read}
    assert set(by_sensor) == {PACKAGE, MEMORY}
    for sensor, watts in ((PACKAGE, 100.0), (MEMORY, 8.0)):
        read, joules = by_sensor[sensor], watts * process.energy.seconds
        assert read.joules is not None, read.why
        assert read.low_j is not None
        assert read.high_j is not None
        assert read.low_j - watts * late_s <= joules <= read.high_j + watts * late_s
        assert read.low_j <= read.joules <= read.high_j
    [package, _] = sorted(process.idle_power, key=lambda each: each.sensor)
    assert package.watts == pytest.approx(40.0, rel=0.2)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an empty folder in place of ``/`` for sensors, and install the example framework."""
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(energy, "_IDLE_S", 0.4)
    install_example(tmp_path / "installed", monkeypatch)
    return tmp_path


@pytest.fixture
def board(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake a GPU of 100 W that every process uses, whose clock and counter do not advance."""
    put_gpu_into_workers(machine, monkeypatch)
    fresh_fake_nvml()


def plan_on(device: str, seconds: float = 0.05) -> Plan:
    return small_plan(
        "example",
        Work("mlp", 4),
        available_cores=tuple(sorted(os.sched_getaffinity(0)))[:1],
        measuring=Measuring(seconds=seconds),
        device=device,
    )


def raced(plan: Plan) -> ProcessResult:
    [process] = run_race(plan).processes
    assert process.outcome == "finished", process.message
    return process


@pytest.mark.usefixtures("board")
def test_a_board_of_constant_power_gives_exactly_its_joules() -> None:
    plan = plan_on("cuda:0", seconds=0.15)  # in less, the sensor of a board may have seen nothing
    process = raced(plan)
    assert process.energy is not None
    [read] = process.energy.read
    exact_j = 100.0 * process.energy.seconds
    assert read.joules == pytest.approx(exact_j, rel=1e-6)
    assert read.low_j == pytest.approx(0.95 * exact_j)
    assert read.high_j == pytest.approx(1.05 * exact_j)
    [row] = results_of(Run(plan, [process], {}, {})).rows
    joules_per_item = exact_j / (4 * process.energy.calls)
    for estimate, exact in (
        (row.mean_power_w, 100.0),
        (row.peak_power_w, 100.0),
        (row.idle_power_w, 100.0),
        (row.energy_per_item_j, joules_per_item),
        (row.idle_energy_per_item_j, joules_per_item),
    ):
        assert estimate is not None
        assert estimate.value == pytest.approx(exact, rel=1e-6)
    assert row.mean_power_w is not None
    assert [row.mean_power_w.low, row.mean_power_w.high] == pytest.approx([95.0, 105.0])


@pytest.mark.slow
@pytest.mark.usefixtures("board")
def test_the_energy_of_work_on_a_processor_does_not_include_the_board() -> None:
    process = raced(plan_on("cpu"))
    assert (process.energy, bool(process.energy_absent)) == (None, True)


@pytest.mark.slow
def test_without_a_sensor_no_thread_runs_and_the_row_has_the_reason(machine: Path) -> None:
    plan = plan_on("cpu")
    process = raced(plan)
    assert (process.energy, process.idle_power) == (None, ())
    assert "fairlap-sampler" not in {thread.read_text().strip() for thread in Path("/proc/self/task").glob("*/comm")}
    [row] = results_of(Run(plan, [process], {}, {})).rows
    columns = ("energy_per_item_j", "idle_energy_per_item_j", "mean_power_w", "idle_power_w")
    assert {row.absent[column] for column in columns} == {process.energy_absent}
    assert f"{machine}/sys/class/powercap" in process.energy_absent


@pytest.mark.slow
def test_a_region_that_no_counter_bounds_is_absent_and_not_0(machine: Path) -> None:
    zone = machine / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("5000000\n")  # it never changes
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    plan = plan_on("cpu")
    [row] = results_of(Run(plan, [raced(plan)], {}, {})).rows
    assert row.energy_per_item_j is None
    assert row.absent["energy_per_item_j"].startswith("unresolved: ")


_HOT = """
import ctypes, os
ctypes.CDLL(os.environ["FAIRLAP_LIBNVML"]).fake_nvml_set_reading(0, b"throttle_reasons", ctypes.c_uint64(0x40))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("board")
@pytest.mark.parametrize("seen_by", ["fairlap", "the worker's sampler"])
def test_a_board_that_stays_hot_is_tried_again_and_then_no_ratio_is_claimed(
    seen_by: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process has a fake of its own: hot is that of this one, or that of the workers alone."""
    monkeypatch.setattr(repeated_processes, "_FIRST_PAUSE_S", 0.0)
    if seen_by == "fairlap":
        fresh_fake_nvml().fake_nvml_set_reading(0, b"throttle_reasons", 0x40)
    else:
        put_gpu_into_workers(machine, monkeypatch, IN_USE + _HOT)
    plan = plan_on("cuda:0", seconds=0.4)
    process = raced(plan)
    assert (process.repeats, process.machine[SLOWED]) == (repeated_processes.MOST_REPEATS, 1.0)
    assert process.energy is not None
    assert process.energy.device_slowed_share == (0.0 if seen_by == "fairlap" else 1.0)
    assert process.energy.device_sm_mhz == 1980.0
    assert len(process.device_states) == 2
    stolen = stolen_time([process])
    assert stolen.refusal_on_device()[1] == E_GPU_THROTTLED
