"""What fairlap starts it watches, and ends with all that it started itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import fairlap
from fairlap.machine.programs.processes import process_stat
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.race.started_servers import new_log
from fairlap.scenarios.streams.servers import stream_server
from fairlap.scenarios.streams.started import started_server
from fairlap.scenarios.streams.started.started_server import ServerNotReady, StartedServer
from machine_marks import needs, needs_proc
from started_by_fairlap import HOW, are_gone, pids_in, planted
from stream_races import raced_by_name

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

pytestmark = needs_proc


@pytest.fixture
def started(prompts: Path) -> Iterator[Callable[..., StartedServer]]:
    running: list[StartedServer] = []

    def start(*options: object, more: str = "") -> StartedServer:
        server = stream_server(contestant_named(planted(*options, more=more)), chat=False, remote=False)
        running.append(StartedServer(server, dict(os.environ), new_log()))
        return running[-1]

    yield start
    for each in running:
        each.end()


def cpu_s(pid: int) -> float:
    stat = process_stat(pid)
    assert stat is not None
    return stat.cpu_s


def test_one_that_computes_while_it_is_stopped_is_found(started: Callable[..., StartedServer], pids: Path) -> None:
    spinning = started("--fault", "spins", "--pids", pids)
    spinning.wait_until_ready()
    assert spinning.freeze() == ""
    time.sleep(0.05)
    assert spinning.thaw() == ""
    spinning.freeze()
    [pid] = pids_in(pids)
    os.kill(pid, signal.SIGCONT)  # as another process of its could
    before_s = cpu_s(pid)
    while cpu_s(pid) < before_s + 0.05:
        time.sleep(0.001)
    assert "s of CPU time" in spinning.thaw()


def test_one_that_dies_later_is_named_with_its_log(started: Callable[..., StartedServer], pids: Path) -> None:
    found = started("--pids", pids)
    found.wait_until_ready()
    assert found.why_ended() is None
    os.kill(pids_in(pids)[0], signal.SIGKILL)
    while (why := found.why_ended()) is None:
        time.sleep(0.01)
    assert why.code == "E_SERVER_ENDED"
    assert "9" in why.text.partition("(")[0]
    assert ".log" in why.text


def test_one_that_prints_without_end_is_ended_before_it_fills_the_disk(
    started: Callable[..., StartedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started_server, "_LARGEST_LOG_BYTES", 2**20)
    printing = started("--fault", "prints")
    with pytest.raises(ServerNotReady) as ended:
        printing.wait_until_ready()
    assert ended.value.code == "E_SERVER_START"
    assert printing.why_ended() is not None
    assert printing._log.stat().st_size <= 2**20


def test_it_is_ready_by_the_path_that_the_user_names(started: Callable[..., StartedServer]) -> None:
    found = started(more=":health=/health")
    found.wait_until_ready()
    assert found.why_ended() is None
    with pytest.raises(ServerNotReady):
        started("--fault", "never", more=":health=/health:ready_within=200ms").wait_until_ready()


def test_children_are_ended_with_it(prompts: Path, pids: Path) -> None:
    raced_by_name(prompts, planted("--fault", "child", "--pids", pids), **HOW)
    assert len(pids_in(pids)) == 2
    assert are_gone(pids_in(pids), 0.0)


@pytest.mark.slow
def test_the_null_server_of_the_client_outlives_the_servers_that_are_ended_between_blocks(prompts: Path) -> None:
    """A command that is a process of its own ends what its servers leave behind, and must know what is not theirs."""
    how = ("--tokens", 4, "--rate", 50, "--trial", "200ms", "--blocks", 2, "--json", "--no-store", "-q")
    for more in ((), ("--clients", 2)):
        done = fairlap("load", prompts, "--on", planted("--first-ms", 20), *how, *more)
        floors = [each["streams"]["client_floor"] for each in json.loads(done.stdout)["processes"]]
        assert [each["answered"] for each in floors] == [each["requests"] for each in floors]
        assert [each["requests"] >= 10 for each in floors] == [True, True]


ENDS = {"starting": (signal.SIGINT, signal.SIGKILL), "racing": (signal.SIGTERM, signal.SIGKILL)}


@pytest.mark.slow_but("racing-9")
@pytest.mark.parametrize(("when", "number"), [(when, number) for when, numbers in ENDS.items() for number in numbers])
def test_nothing_is_left_when_fairlap_is_ended(
    when: str, number: signal.Signals, prompts: Path, pids: Path, tmp_path: Path
) -> None:
    slow = ["--ready-after", 60] if when == "starting" else ["--each-ms", 1]
    names = [planted("--fault", "child", "--pids", pids, *each) for each in ([], slow)]
    options = ["--tokens", "4", "--rate", "50", "--trial", "200ms", "--blocks", "1000", "--quiet", "--no-store"]
    command = [sys.executable, "-m", "fairlap", "load", str(prompts), "--on", ",".join(names), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (pids.exists() and len(pids_in(pids)) == 4):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.5 if when == "racing" else 0.0)
        process.send_signal(number)
        assert process.wait(200) == {2: 130, 15: 143, 9: -9}[number]
    assert len(pids_in(pids)) == 4
    assert are_gone(pids_in(pids))
