"""What is read from the kernel's files: the numbers of a machine made of files, and the reason where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fairlap.machine.root import Root
from fairlap.watch.machine_metrics import MACHINE_METRICS, NO_CLOCK, NO_GROUP, NO_PRESSURE, read_machine_files
from fairlap.watch.readings import ReadingsNow
from watched_machine import NO_NVML


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_clock_is_the_mean_lowest_and_highest_of_a_few_cores(tmp_path: Path) -> None:
    for core in range(40):
        path = f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"
        write(tmp_path, path, "2000000\n" if core % 2 == 0 else "3000000\n")
    write(tmp_path, "sys/devices/system/cpu/cpufreq/boost", "1\n")
    files = read_machine_files(Root(tmp_path))
    assert files["cpu_frequency", "lowest_mhz"] == 2000
    assert files["cpu_frequency", "highest_mhz"] == 3000
    assert files["cpu_frequency", "mean_mhz"] == pytest.approx(2500, abs=200)


def test_stolen_time_is_the_eighth_column_in_seconds(tmp_path: Path) -> None:
    write(tmp_path, "proc/stat", "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert read_machine_files(Root(tmp_path))["steal", "stolen_s"] == 800 / os.sysconf("SC_CLK_TCK")


def test_pressure_is_the_total_of_each_line_and_a_kind_that_is_missing_is_absent_alone(tmp_path: Path) -> None:
    averages = "avg10=0.00 avg60=0.00 avg300=0.00"
    write(tmp_path, "proc/pressure/cpu", f"some {averages} total=3000000\nfull {averages} total=0\n")
    write(tmp_path, "proc/pressure/memory", f"some {averages} total=5\nfull {averages} total=4000000\n")
    files = read_machine_files(Root(tmp_path))
    assert files["pressure", "cpu_some_s"] == 3.0
    assert files["pressure", "memory_full_s"] == 4.0
    assert files["pressure", "io_some_s"] == NO_PRESSURE
    readings = ReadingsNow(0.1, root=str(tmp_path), nvml_library=NO_NVML)
    assert readings.sources["pressure"] == ""
    [lacking] = [absence for absence in readings.absences() if absence.why == NO_PRESSURE]
    assert (lacking.source, len(lacking.metrics)) == ("pressure", 2)


def test_every_metric_is_read_and_on_a_machine_without_files_each_has_its_reason(tmp_path: Path) -> None:
    files = read_machine_files(Root(tmp_path))
    assert {(metric.source, metric.field) for metric in MACHINE_METRICS} <= set(files)
    assert all(isinstance(each, str) for each in files.values())
    assert files["cpu_frequency", "mean_mhz"] == NO_CLOCK
    assert files["control_group", "cpu_s"] == NO_GROUP
