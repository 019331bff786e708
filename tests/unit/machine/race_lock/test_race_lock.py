"""One race at a time on a core: real processes wait, are refused, are killed, and run inside of each other."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fairlap.machine.hardware.processor import siblings
from fairlap.machine.race_lock import lock
from fairlap.machine.race_lock.holder import SETTING, listening, prefix, races_running
from fairlap.machine.race_lock.lock import MachineBusy, names_of, one_race
from fairlap.machine.root import THIS_MACHINE

_WITHIN_S = 60.0
_ANOTHER_USER = 65534

# Prints `racing` once it holds the cores of its first argument, and `waiting ...` before; ends with its input.
_RACE = """
import os, sys
from fairlap.machine.race_lock.lock import one_race
os.sched_setaffinity(0, map(int, sys.argv[1].split(",")))
with one_race(wait="no-wait" not in sys.argv, longest_s=300.0, notify=lambda line: print(line, flush=True)):
    print("racing", flush=True)
    sys.stdin.readline()
print("over", flush=True)
"""
_ALL = ",".join(map(str, sorted(os.sched_getaffinity(0))))

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path))


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, program: str = _RACE) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    """Byte by byte, since a buffer would hide from ``select`` that another line has come."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], _WITHIN_S)[0]
        byte = os.read(process.stdout.fileno(), 1)
        assert byte, process.communicate()
        line += byte
    return line.decode().strip()


def is_silent(process: subprocess.Popen[str], seconds: float = 0.5) -> bool:
    assert process.stdout is not None
    return not select.select([process.stdout], [], [], seconds)[0]


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_second_race_waits_for_the_first_which_it_names_and_then_runs(start: Start) -> None:
    first = start(_ALL)
    assert line_of(first) == "racing"
    second = start(_ALL)
    assert f"process {first.pid} " in line_of(second)
    assert is_silent(second)
    end(first)
    assert line_of(first) == "over"
    assert line_of(second) == "racing"


def test_a_race_that_does_not_wait_is_refused(start: Start) -> None:
    first = start(_ALL)
    assert line_of(first) == "racing"
    with pytest.raises(MachineBusy) as refused, one_race(wait=False):
        pass
    assert refused.value.code == "E_BUSY"
    assert str(first.pid) in str(refused.value)


def test_nothing_is_left_of_a_race_that_was_killed(start: Start) -> None:
    first = start(_ALL)
    assert line_of(first) == "racing"
    second = start(_ALL)
    assert str(first.pid) in line_of(second)
    first.kill()
    assert line_of(second) == "racing"


def test_a_race_that_ended_leaves_its_names_free_although_a_fork_of_it_lives() -> None:
    with one_race(wait=False):
        fork = os.fork()
        if fork == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with one_race(notify=lambda _line: None, longest_for_others_s=_WITHIN_S):  # the fork may not have run yet
            assert os.waitpid(fork, os.WNOHANG) == (0, 0)
    finally:
        os.kill(fork, signal.SIGKILL)
        os.waitpid(fork, 0)


def test_races_on_other_cores_run_side_by_side_and_say_so(start: Start) -> None:
    first_core, *others = sorted(os.sched_getaffinity(0))
    apart = [core for core in others if core not in siblings(THIS_MACHINE, first_core)]
    if not apart:
        pytest.skip("needs two physical cores; most machines of developers have them")
    first, second = start(str(first_core)), start(str(apart[0]), "no-wait")
    lines = {first.pid: [line_of(first)], second.pid: [line_of(second)]}
    for process in (first, second):
        while lines[process.pid][-1] != "racing":
            lines[process.pid].append(line_of(process))
    assert any("W_SIDE_BY_SIDE" in line for seen in lines.values() for line in seen)
    third = start(_ALL)
    assert "waiting" in line_of(third)
    end(first)
    assert is_silent(third)  # it needs both cores
    end(second)
    assert line_of(third) == "racing"


def test_races_on_other_cores_are_warned_of_in_one_line_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(lock, "_noted", set[str]())
    for running in (["process 7", "process 8"], ["process 7", "process 8"], ["process 8", "process 9"]):
        monkeypatch.setattr(lock, "races_running", lambda running=running: running)
        with one_race(notify=lines.append):
            pass
    assert [[each for each in "789" if f"process {each}" in line] for line in lines] == [["7", "8"], ["9"]]


def test_a_race_inside_of_a_race_runs_at_once(start: Start) -> None:
    with one_race(wait=False), one_race(wait=False):
        assert line_of(start(_ALL, "no-wait")) == "racing"
        of_a_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_RACE!r}, '{_ALL}', 'no-wait'])"
        assert line_of(start(program=of_a_child)) == "racing"


def test_ctrl_c_ends_the_waiting_at_once(start: Start) -> None:
    first = start(_ALL)
    assert line_of(first) == "racing"
    second = start(_ALL)
    assert str(first.pid) in line_of(second)
    second.send_signal(signal.SIGINT)
    second.wait(_WITHIN_S)
    assert second.returncode != 0
    assert first.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, so it runs as root, as in most containers")
@pytest.mark.parametrize("listens", [True, False])
def test_another_user_delays_a_race_and_cannot_stop_it(start: Start, listens: bool) -> None:
    [name, *_] = names_of(sorted(os.sched_getaffinity(0)))
    squatter = f"""
import os, socket, sys
os.setuid({_ANOTHER_USER})
held = socket.socket(socket.AF_UNIX)
held.bind("\\0{name}")
if {listens}:
    held.listen(1)
print("squatting", flush=True)
sys.stdin.readline()
"""
    assert line_of(start(program=squatter)) == "squatting"
    with pytest.raises(MachineBusy), one_race(wait=False):
        pass
    lines: list[str] = []
    with one_race(notify=lines.append, longest_for_others_s=0.5):
        pass
    assert [line for line in lines if "W_DID_NOT_WAIT" in line]


def test_who_holds_a_name_is_asked_of_the_kernel_and_not_read_from_the_name(start: Start) -> None:
    forged = f"{prefix()}/race/1/0/"
    with_another_pid = listening(forged, 1)
    try:
        assert races_running() == []
    finally:
        with_another_pid.close()
    first = start(_ALL)
    assert line_of(first) == "racing"
    [found] = races_running()
    assert found.pid == first.pid
    assert found.user == os.geteuid()
    assert found.began is not None
    assert found.ends == pytest.approx(found.began + 300, abs=2)


@pytest.mark.parametrize("odd", ["/race/", "/race/1", "/race/1/2", "/race/x/y/z/w", "/race/1/" + "9" * 40 + "/"])
def test_an_odd_name_is_no_race(odd: str) -> None:
    with listening(prefix() + odd, 1):
        assert races_running() == []


def test_what_a_race_holds_has_no_place_in_the_file_system_for_a_link_of_another_user() -> None:
    before = descriptors()
    with one_race(wait=False):
        held = [str(Path(f"/proc/self/fd/{each}").readlink()) for each in descriptors() - before]
    assert len(held) == len(names_of(sorted(os.sched_getaffinity(0)))) + 1
    assert all(each.startswith("socket:") for each in held)


def descriptors() -> set[str]:
    return {each for each in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{each}")}  # noqa: PTH208
