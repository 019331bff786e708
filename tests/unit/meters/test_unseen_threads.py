"""What others took from threads and programs that end with a call, by counters whose values are known."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fairlap.machine.processes import ProcessStat
from fairlap.meters import disturbances
from fairlap.meters.disturbances import TAKEN, UnseenThreads

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def readings(
    monkeypatch: pytest.MonkeyPatch, *, own_s: float, seen_s: float, busy_s: float, idle_s: float, turns_s: float = 1.0
) -> dict[str, float]:
    """After one turn of so long, in which the machine was busy and idle for so many seconds of its cores' time."""
    ticks: Iterator[list[int]] = iter([[0] * 8, [round(busy_s / TICK_S), 0, 0, round(idle_s / TICK_S), 0, 0, 0, 0]])
    stats = iter([ProcessStat("S", 1, 1, 0.0), ProcessStat("S", 1, 1, seen_s, own_s - seen_s)])
    threads = iter([{1: 0.0}, {1: seen_s}])
    monkeypatch.setattr(disturbances, "cpu_ticks", lambda _: next(ticks))
    monkeypatch.setattr(disturbances, "process_stat", lambda _: next(stats))
    monkeypatch.setattr(disturbances, "ran_s", lambda _: next(threads))
    meter = UnseenThreads(1)
    with meter.turn():
        pass
    return meter.readings(turns_s)


def test_what_the_machine_did_besides_was_taken_where_no_core_was_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert readings(monkeypatch, own_s=1.0, seen_s=0.1, busy_s=2.0, idle_s=0.0) == {TAKEN: pytest.approx(1.0)}


def test_an_idle_core_was_there_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    assert readings(monkeypatch, own_s=1.0, seen_s=0.1, busy_s=2.0, idle_s=2.0) == {TAKEN: 0.0}


def test_on_a_quiet_machine_nothing_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = readings(monkeypatch, own_s=1.9, seen_s=0.1, busy_s=1.95, idle_s=0.05)
    assert found == {TAKEN: pytest.approx(0.05, abs=0.01)}


@pytest.mark.parametrize("changes", [{"seen_s": 0.95}, {"turns_s": 0.1}, {"own_s": 0.0, "seen_s": 0.0}])
def test_nothing_is_said_of_threads_that_stay_nor_of_short_turns(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float]
) -> None:
    asked = {"own_s": 1.0, "seen_s": 0.1, "busy_s": 2.0, "idle_s": 0.0, **changes}
    assert readings(monkeypatch, **asked) == {}


def _threads() -> None:
    before = len(list(Path("/proc/self/task").iterdir()))
    work = threading.Thread(target=_itself)
    work.start()
    work.join()
    while len(list(Path("/proc/self/task").iterdir())) > before:  # Python joins it before the kernel has ended it
        time.sleep(0.001)


def _program() -> None:
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)


def _itself() -> None:
    hashlib.sha256(bytes(200_000_000)).digest()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts what threads have run")
@pytest.mark.parametrize(("work", "unseen"), [(_threads, True), (_program, True), (_itself, False)])
def test_threads_and_programs_that_have_ended_are_noticed(work: Callable[[], None], unseen: bool) -> None:
    meter = UnseenThreads(os.getpid())
    with meter.turn():
        work()
    assert (TAKEN in meter.readings(1.0)) is unseen
