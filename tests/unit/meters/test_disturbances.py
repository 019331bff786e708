"""What disturbed a measurement, from the kernel's counters at both ends, and what others took from unseen threads."""

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
from fairlap.machine.programs.processes import ProcessStat
from fairlap.machine.root import Root
from fairlap.meters import disturbances
from fairlap.meters.disturbances import (
    MEASURED,
    OTHERS,
    OWN,
    RUN_QUEUE,
    STEAL,
    TAKEN,
    THROTTLED,
    WAITED,
    DisturbanceMeter,
    StepsMeter,
    UnseenThreads,
    WaitingMeter,
)

VERSION_2 = ("0::/group\n", "sys/fs/cgroup/group", "throttled_usec", 1e6)
VERSION_1 = ("4:cpu,cpuacct:/group\n0::/\n", "sys/fs/cgroup/cpu,cpuacct/group", "throttled_time", 1e9)


@pytest.mark.parametrize(("groups", "folder", "name", "per_second"), [VERSION_2, VERSION_1], ids=["v2", "v1"])
def test_each_counter_becomes_a_share_of_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, folder: str, name: str, per_second: float
) -> None:
    def counted(steal: int, waited_us: int, stopped_s: float) -> None:
        files = {
            "proc/stat": f"cpu  10 0 10 1000 0 0 0 {steal} 0 0\ncpu0 1\n",
            "proc/pressure/cpu": f"some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\nfull total=0\n",
            "proc/self/cgroup": groups,
            f"{folder}/cpu.stat": f"nr_periods 9\nnr_throttled 3\n{name} {round(stopped_s * per_second)}\n",
        }
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)

    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    counted(40, 1_000_000, 1.0)
    meter = DisturbanceMeter(Root(tmp_path))
    counted(80, 1_500_000, 1.5)
    now_s[0] = 102.0
    assert meter.readings() == {STEAL: 0.2 / 2, RUN_QUEUE: 0.25, THROTTLED: 0.5}


def test_what_the_kernel_does_not_count_is_absent(tmp_path: Path) -> None:
    assert DisturbanceMeter(Root(tmp_path)).readings() == {}


def test_waiting_is_a_share_of_the_contestant_s_own_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has ended has waited as long as when it was seen last."""
    clock = iter([100.0, 101.0, 150.0, 153.0])
    waited = iter([{7: 2.0}, {7: 2.25, 8: 0.25}, {7: 2.5}, {7: 2.75}])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr(disturbances, "waited_s", lambda _pid: next(waited))
    meter = WaitingMeter(7)
    for _ in range(2):
        with meter.turn():
            pass
    assert meter.readings() == {WAITED: 1.0 / 4.0}


def test_a_process_that_is_gone_or_had_no_turn_has_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disturbances, "waited_s", lambda _pid: {7: 1.0})
    assert WaitingMeter(7).readings() == WaitingMeter(None).readings() == {}
    found = iter([{7: 1.0}, None, None])
    monkeypatch.setattr(disturbances, "waited_s", lambda _pid: next(found))
    gone = WaitingMeter(7)
    with gone.turn():
        pass
    assert gone.readings() == {}


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
    monkeypatch.setattr(disturbances, "descendants", lambda _: [])
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


class Counted:
    """The counters of a process and of the machine, which a test moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = self.waited_s = self.ran_s = self.of_child_s = self.others_s = self.stopped_s = 0.0
        threads = {"waited_s": lambda _: {7: self.waited_s}, "ran_s": lambda _: {7: self.ran_s}}
        for name, read in threads.items():
            monkeypatch.setattr(disturbances, name, read)
        monkeypatch.setattr(disturbances, "descendants", lambda _: [8])
        monkeypatch.setattr(disturbances, "process_stat", self.stat)
        monkeypatch.setattr(disturbances, "cpu_ticks", self.ticks)
        monkeypatch.setattr(disturbances, "_counters", lambda _root: {THROTTLED: self.stopped_s})
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)

    def stat(self, pid: int) -> ProcessStat:
        return ProcessStat("S", 1, 1, self.ran_s if pid == 7 else self.of_child_s)

    def ticks(self, _root: object) -> list[int]:
        return [round((self.ran_s + self.of_child_s + self.others_s) / TICK_S), 0, 0, 0, 0, 0, 0, 0]

    def passes(self, **seconds: float) -> None:
        for name, more in seconds.items():
            setattr(self, name, getattr(self, name) + more)


def test_steps_are_metered_apart_from_what_happens_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    meter = StepsMeter(7)
    assert meter.readings() == {}
    for _ in range(2):
        with meter.turn():
            counted.passes(now_s=1.0, waited_s=0.4, ran_s=1.0, others_s=0.7, stopped_s=0.1)
        counted.passes(now_s=9.0, waited_s=5.0, ran_s=3.0, others_s=8.0, stopped_s=2.0)
    read = meter.readings()
    assert read[WAITED] == pytest.approx(0.4)
    assert read[OTHERS] == pytest.approx(0.7)
    assert read[THROTTLED] == pytest.approx(0.2)
    assert (read[MEASURED], TAKEN in read) == (2.0, False)
    assert 0 <= read[OWN] < 0.05


def test_work_of_processes_is_its_own_and_what_others_did_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of ranks, which a process conducts that waits for nothing itself."""
    counted = Counted(monkeypatch)
    meter = StepsMeter(7)
    with meter.turn():
        counted.passes(now_s=1.0, ran_s=0.01, of_child_s=1.2, others_s=0.8)
    assert meter.readings()[TAKEN] == pytest.approx(0.8, abs=0.02)


def test_waiting_is_of_the_time_in_which_there_was_work(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    meter = StepsMeter(7)
    with meter.turn():
        counted.passes(now_s=2.0, waited_s=0.3)
    meter.leave_out(1.4)
    assert meter.readings()[WAITED] == pytest.approx(0.5)
    meter.leave_out(100.0)
    assert meter.readings()[WAITED] == pytest.approx(3.0)  # no less than a twentieth of the time is work


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts how long threads wait")
def test_a_busy_neighbour_on_the_same_core_is_seen_in_the_steps_and_not_before() -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        before, steps = StepsMeter(os.getpid()), StepsMeter(os.getpid())
        waited_before = _waited_in_a_step(before, 0.3)
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:  # bound as this process is
            _busy_for_s(0.5)  # between steps
            waited = _waited_in_a_step(steps, 0.5)
            neighbour.kill()
    finally:
        os.sched_setaffinity(0, cores)
    assert steps.readings()[WAITED] > 0.25
    for meter, (waited_s, whole_s) in ((before, waited_before), (steps, waited)):
        step_s = meter.readings()[MEASURED]
        in_step_s = meter.readings()[WAITED] * step_s
        # What else the kernel counted was waited before and after the step.
        assert waited_s - (whole_s - step_s) - 0.02 < in_step_s < waited_s + 0.02


def _waited_in_a_step(meter: StepsMeter, seconds: float) -> tuple[float, float]:
    """Compute in a step; return how long the kernel says that it waited for the core, and how long all of it took."""
    waited_s, began_s = _waited_s(), time.perf_counter()
    with meter.turn():
        _busy_for_s(seconds)
    return _waited_s() - waited_s, time.perf_counter() - began_s


def _waited_s() -> float:
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


def _busy_for_s(seconds: float) -> None:
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        pass
