"""What disturbed a measurement, from the kernel's counters at both ends of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.root import Root
from fairlap.meters import disturbances
from fairlap.meters.disturbances import RUN_QUEUE, STEAL, THROTTLED, WAITED, DisturbanceMeter, WaitingMeter

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
