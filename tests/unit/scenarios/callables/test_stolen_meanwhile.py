"""Callables whose threads lost their cores to other programs get no verdict; on one thread they do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from busy_programs import busy_programs
from fairlap.meters.disturbances import MEASURED, OTHERS, THROTTLED, WAITED, StepsMeter
from fairlap.meters.stolen_time import E_BUSY_MACHINE, E_THROTTLED
from fairlap.scenarios.callables.axes.over_axes import compare_over
from fairlap.scenarios.callables.stolen_meanwhile import StolenMeanwhile

STARVED = {WAITED: 0.9, OTHERS: 1.2, MEASURED: 1.0}
CORES = sorted(os.sched_getaffinity(0))[:2]
DATA = bytes(200_000)


OWN_CALLS = """
import hashlib, threading

DATA = bytes(200_000)

def short():
    hashlib.sha256(DATA).digest()

def longer():
    short()
    short()

def meeting(work):
    barrier = threading.Barrier(2)
    def run():
        for _ in range(10):
            work()
            barrier.wait()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

def short_meeting():
    meeting(short)

def longer_meeting():
    meeting(longer)
"""


def short() -> None:
    hashlib.sha256(DATA).digest()


def longer() -> None:
    hashlib.sha256(DATA).digest()
    hashlib.sha256(DATA).digest()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def plant(readings: Mapping[str, float], *, several: bool) -> None:
        monkeypatch.setattr(StepsMeter, "readings", lambda _: dict(readings))
        monkeypatch.setattr(StepsMeter, "turn", lambda _: nullcontext())
        monkeypatch.setattr("time.process_time", iter(range(0, 10**6, 2 if several else 1)).__next__)
        monkeypatch.setattr("time.thread_time", iter(range(10**6)).__next__)

    return plant


def refused(readings: Mapping[str, float], *, several: bool, read: Callable[..., None]) -> str:
    read(readings, several=several)
    meanwhile = StolenMeanwhile()
    with meanwhile.watched():
        pass
    return meanwhile.why_not_claimable()[1]


@pytest.mark.parametrize(
    ("readings", "several", "code"),
    [
        (STARVED, True, E_BUSY_MACHINE),
        (STARVED, False, ""),  # single samples in turn, on a thread that meets no other
        ({**STARVED, OTHERS: 0.05}, True, ""),  # they waited for each other
        ({WAITED: 0.9, MEASURED: 0.1}, True, ""),  # too short for the kernel's ticks
        ({**STARVED, WAITED: 0.3}, True, ""),
        ({**STARVED, WAITED: 0.0, THROTTLED: 0.3}, False, E_THROTTLED),
        ({**STARVED, WAITED: 0.0, THROTTLED: 0.005}, True, ""),
    ],
)
def test_the_rule_is_that_of_races(
    readings: Mapping[str, float], several: bool, code: str, read: Callable[..., None]
) -> None:
    assert refused(readings, several=several, read=read) == code


@pytest.fixture
def starved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StolenMeanwhile, "why_not_claimable", lambda _: ("threads waited", E_BUSY_MACHINE))


@pytest.mark.usefixtures("starved")
def test_a_comparison_without_a_verdict_keeps_its_times_and_has_the_code() -> None:
    found = fairlap.compare({"short": short, "longer": longer}, blocks=6, seconds=0.002)
    assert (found.comparisons, found.standing, found.no_verdict_code) == ((), None, E_BUSY_MACHINE)
    assert E_BUSY_MACHINE in found.why_no_verdict
    assert len(found.rows) == 2
    assert all(row.median_ns > 0 for row in found.rows)
    assert found.to_dict()["no_verdict_code"] == E_BUSY_MACHINE
    assert E_BUSY_MACHINE in str(found)


@pytest.mark.usefixtures("starved")
def test_points_of_axes_have_no_verdict_either_and_curves_do_not_cross() -> None:
    found = compare_over(
        {"sorted": np.sort, "summed": np.sum},
        inputs=lambda rng, n: rng.normal(size=n),
        axes={"n": [64, 256, 1024]},
        any_answers=True,
        blocks=6,
        seconds=0.001,
    )
    assert all(E_BUSY_MACHINE in point.why_no_verdict and not point.comparisons for point in found.points)
    assert found.crossings == ()
    assert all(len(point.rows) == 2 for point in found.points)


def compared(folder: Path, *calls: str) -> dict[str, Any]:
    """In a process that did not start the programs beside it, which would be its own."""
    command = [sys.executable, "-m", "fairlap", "time", *(f"own_calls:{name}" for name in calls), "--json"]
    ran = subprocess.run(
        [*command, "--blocks", "12", "--seconds", "0.05"], cwd=folder, capture_output=True, text=True, check=True
    )
    return dict(json.loads(ran.stdout))


@pytest.mark.slow
@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_threads_that_meet_beside_busy_programs_get_no_verdict_and_single_ones_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "own_calls.py").write_text(OWN_CALLS)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        with busy_programs(len(CORES)):
            several = compared(tmp_path, "short_meeting", "longer_meeting")
            single = compared(tmp_path, "short", "longer")
    finally:
        os.sched_setaffinity(0, cores)
    assert several["no_verdict_code"] == E_BUSY_MACHINE, several
    assert several["comparisons"] == []
    [comparison] = single["comparisons"]
    assert single["no_verdict_code"] == ""
    assert max(comparison["ratio"], 1 / comparison["ratio"]) == pytest.approx(2.0, rel=0.1)
