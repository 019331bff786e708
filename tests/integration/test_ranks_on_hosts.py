"""Ranks on two hosts, each in its own network, train as one process does; if one is lost, all end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from fairlap.worker.ranks.launchers import SHELL
from network_hosts import HOSTS, name_on, network_hosts, processes_on, why_no_hosts
from one_block import processes_of_one_block

pytestmark = [
    pytest.mark.skipif(bool(why_no_hosts()), reason=why_no_hosts()),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    with network_hosts(tmp_path) as shell:
        monkeypatch.setenv(SHELL, str(shell))
        yield HOSTS


def raced(name: str, hosts: tuple[str, ...], *, seconds: float = 0.3) -> ProcessResult:
    if not is_importable(framework_named(contestant_named(name).framework)):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.01, momentum=0.9)), scale=Scale(1, 2, hosts=hosts))
    return processes_of_one_block(name, work, seconds=seconds)[name]


def left_on(hosts: tuple[str, ...]) -> list[int]:
    """Find what has not ended within seconds: other hosts' ranks end when their guardians see the close."""
    deadline_s = time.monotonic() + 5.0
    while (found := [pid for host in hosts for pid in processes_on(host)]) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow:graph", "mpi"])
def test_ranks_of_two_hosts_train_as_one_process_does(name: str, hosts: tuple[str, ...]) -> None:
    result = raced(name, hosts)
    assert (result.outcome, result.message) == ("finished", "")
    assert all(error.right for error in result.errors)
    assert result.ranks is not None
    # mpirun starts its ranks by itself, and they give the names of their machines.
    assert result.ranks.hosts == (tuple(map(name_on, hosts)) if name == "mpi" else hosts)
    assert left_on(hosts) == []


def test_a_rank_that_is_killed_on_its_host_leaves_nothing_on_the_other(hosts: tuple[str, ...]) -> None:
    killed: list[int] = []

    def kill() -> None:
        deadline_s = time.monotonic() + 120.0
        while time.monotonic() < deadline_s and not killed:
            with suppress(OSError):  # it has ended meanwhile
                for pid in processes_on(hosts[1]):
                    if b"--connect" in Path(f"/proc/{pid}/cmdline").read_bytes() and pid == os.getsid(pid):
                        time.sleep(2.0)
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                        return
            time.sleep(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    result = raced("torch", hosts, seconds=60.0)
    killer.join()
    assert killed
    assert (result.outcome, result.code) == ("failed", "E_RANK")
    assert f"rank 1 on {hosts[1]}" in result.message
    assert left_on(hosts) == []
