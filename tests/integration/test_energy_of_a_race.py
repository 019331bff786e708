"""Energy on its way from sensors into row, table, file and page: counters that another process drives, and a board
whose power is known exactly."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_installed import install_example
from fairlap.race.plan import Measuring, Plan, draw_plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.render.outputs import read_rows
from fairlap.request.names import contestants_named
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.store.run_file import load_run

METERED = Path(__file__).parent / "metered"
FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[2] / "build/release/cpp/fakes"))
PACKAGE, MEMORY = "powercap intel-rapl:0 package-0", "powercap intel-rapl:0:1 dram"
BUSY_W, IDLE_W = 100.0 + 8.0, 40.0 + 8.0  # of powercap_meter.py, memory with it

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a race on a machine with energy counters."""
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


def test_the_energy_of_a_race_is_in_row_table_file_and_page(metered: dict[str, str], tmp_path: Path) -> None:
    asked = ["compare", "callable", "--on", "python:call=metered_work.work", "--blocks", "2", "--seconds", "0.4"]
    files = ["--json", "run.json", "--csv", "rows.csv", "--html", "page.html", "--md", "rows.md"]
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
    assert idle is not None
    assert idle.value == pytest.approx(IDLE_W, rel=0.2)
    assert energy is not None
    assert row.idle_energy_per_item_j is not None
    assert energy.value / row.idle_energy_per_item_j.value == pytest.approx(power.value / idle.value, rel=0.1)
    assert set(row.energy_by_sensor_j) == {PACKAGE, MEMORY}  # nothing that lies in the package, and it only once
    assert sum(row.energy_by_sensor_j.values()) == pytest.approx(energy.value, rel=0.2)
    assert f"{power.value:.3g} W" in ran.stdout
    assert "J [" in ran.stdout.partition("energy ")[2]
    assert " an item, " in ran.stdout
    assert "energy/item" in (tmp_path / "rows.md").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "Energy for one item." in page
    assert "energy an item" in page


def _require_exact_joules(process: ProcessResult, late_s: float) -> None:
    """What was really drawn while it was timed lies in the interval that is told, but for what the meter told late."""
    assert process.outcome == "finished", process.message
    assert process.energy is not None
    timed = next(iter(process.figures.values()))
    assert process.energy.calls == timed.samples * timed.calls_per_sample
    told = {each.sensor: each for each in process.energy.read}
    assert set(told) == {PACKAGE, MEMORY}
    for sensor, watts in ((PACKAGE, 100.0), (MEMORY, 8.0)):
        read, joules = told[sensor], watts * process.energy.seconds
        assert read.joules is not None, read.why
        assert read.low_j is not None
        assert read.high_j is not None
        assert read.low_j - watts * late_s <= joules <= read.high_j + watts * late_s
        assert read.low_j <= read.joules <= read.high_j
    [package, _] = sorted(process.idle_power, key=lambda each: each.sensor)
    assert package.watts == pytest.approx(40.0, rel=0.2)


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of 100 W in every process. Its clock stands still, and its counter with it."""
    library = FAKES / "libfairlap_fake_nvml.so"
    assert library.exists(), f"{library} is missing; `make test` builds it"
    monkeypatch.setenv("FAIRLAP_LIBNVML", str(library))
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    ctypes.CDLL(str(library)).fake_nvml_reset()
    install_example(tmp_path / "installed", monkeypatch)


def plan_on(device: str, seconds: float = 0.05) -> Plan:
    return draw_plan(
        contestants_named("example"),
        (Work("mlp", 4),),
        blocks=1,
        conditions="as-found",
        threads=1,
        available_cores=tuple(sorted(os.sched_getaffinity(0)))[:1],
        seed=1,
        measuring=Measuring(seconds=seconds),
        device=device,
    )


def raced(plan: Plan) -> ProcessResult:
    race = Race(plan)
    race.run()
    [process] = race.processes
    assert process.outcome == "finished", process.message
    return process


@pytest.mark.usefixtures("board")
def test_a_board_of_constant_power_gives_exactly_its_joules() -> None:
    plan = plan_on("cuda:0")
    process = raced(plan)
    assert process.energy is not None
    [read] = process.energy.read
    exact_j = 100.0 * process.energy.seconds
    assert read.joules == pytest.approx(exact_j, rel=1e-6)
    assert read.low_j == pytest.approx(0.95 * exact_j)
    assert read.high_j == pytest.approx(1.05 * exact_j)
    [row] = results_of(Run(plan, [process], {}, {})).rows
    assert row.mean_power_w is not None
    assert row.idle_power_w is not None
    assert row.energy_per_item_j is not None
    assert row.idle_energy_per_item_j is not None
    assert row.mean_power_w.value == pytest.approx(100.0, rel=1e-6)
    assert row.idle_power_w.value == pytest.approx(100.0, rel=1e-6)
    assert row.energy_per_item_j.value == pytest.approx(exact_j / (4 * process.energy.calls), rel=1e-6)
    assert row.idle_energy_per_item_j.value == pytest.approx(exact_j / (4 * process.energy.calls), rel=1e-6)
    assert row.mean_power_w.low == pytest.approx(95.0)
    assert row.mean_power_w.high == pytest.approx(105.0)


@pytest.mark.usefixtures("board")
def test_work_on_a_processor_is_not_charged_with_the_board(tmp_path: Path) -> None:
    process = raced(plan_on("cpu"))
    assert process.energy is None
    assert "no zone with an energy counter" in process.energy_absent


def test_without_a_sensor_no_thread_runs_and_the_row_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    install_example(tmp_path / "installed", monkeypatch)
    plan = plan_on("cpu")
    process = raced(plan)
    assert (process.energy, process.idle_power) == (None, ())
    assert "fairlap-sampler" not in {thread.read_text().strip() for thread in Path("/proc/self/task").glob("*/comm")}
    [row] = results_of(Run(plan, [process], {}, {})).rows
    columns = ("energy_per_item_j", "idle_energy_per_item_j", "mean_power_w", "idle_power_w")
    assert {row.absent[column] for column in columns} == {process.energy_absent}
    assert f"{tmp_path}/sys/class/powercap" in process.energy_absent


def test_a_region_that_no_counter_bounds_is_unresolved_and_never_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("5000000\n")  # and there it stays
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    install_example(tmp_path / "installed", monkeypatch)
    plan = plan_on("cpu")
    process = raced(plan)
    [row] = results_of(Run(plan, [process], {}, {})).rows
    assert row.energy_per_item_j is None
    assert row.absent["energy_per_item_j"].startswith("unresolved: the counter made no step")
