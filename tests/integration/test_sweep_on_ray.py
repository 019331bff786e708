"""Two Ray nodes on one machine, a sweep of 20 blocks, and what is killed in the middle.

Nothing is lost or stored twice, and nothing is left running.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlap.machine.programs.processes import process_ids, process_stat
from fairlap.store.file_store import Store
from fairlap.store.store import open_store
from fairlap.store.sweeps import load_sweep
from machine_marks import needs_package
from processes_seen import content, wait_until, wait_until_empty
from ray_nodes import MARK, RayNodes, children_of, ray_nodes

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(600), needs_package("ray")]

BLOCKS = 20
REQUEST = f"""
models = ["callable"]
contestants = ["python:call=os.getpid", "python:call=os.getppid"]
blocks = {BLOCKS}
threads = 1
seconds = 0.2
seed = 1
"""


@pytest.fixture
def cluster() -> Iterator[RayNodes]:
    with ray_nodes() as nodes:
        yield nodes


@pytest.fixture(params=["file", "server"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "server":
        return str(request.getfixturevalue("shared_url"))
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return str(tmp_path / "runs.sqlite")


def sweep(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairlap", "sweep", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        start_new_session=True,
    )


def wait_for_block(process: subprocess.Popen[str], number: int) -> list[str]:
    """Collect the lines on standard error until so many blocks are stored."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(f"[{number} of"):
            return lines
    raise AssertionError("".join(lines))


def request_file(folder: Path, blocks: int = BLOCKS) -> Path:
    file = folder / "small.toml"
    file.write_text(REQUEST.replace(f"blocks = {BLOCKS}", f"blocks = {blocks}"))
    return file


def require_whole(store: Store, blocks: int = BLOCKS) -> None:
    """All blocks once, with all processes and samples, and a verdict that rests on them."""
    [run] = load_sweep(store, "last").runs
    assert sorted(run.hosts) == list(range(blocks))
    loaded = store.load(run.run)
    counted = Counter((process.block, process.contestant) for process in loaded.processes)
    assert len(counted) == 2 * blocks
    assert set(counted.values()) == {1}
    assert all(process.finished for process in loaded.processes), [each.message for each in loaded.processes]
    for process in loaded.processes:
        [(_, samples), *_] = store.samples(run.run, process.block, process.contestant).items()
        assert len(samples) == process.headline.samples
    assert store.state(run.run) == "finished"
    assert len([row for row in store.rows(run.run) if row.verdict is not None]) == 1


def test_a_node_that_is_killed_costs_nothing_but_time(cluster: RayNodes, store_url: str, tmp_path: Path) -> None:
    begun = sweep(request_file(tmp_path), "--cluster", "auto", "--json", RAY_ADDRESS=cluster.address)
    lines = wait_for_block(begun, 7)
    busy = the_busy_node(cluster)
    cluster.kill(busy)
    output, errors = begun.communicate(timeout=300)
    assert begun.returncode == 0, "".join(lines) + errors
    document = json.loads(output)
    assert document["state"] == "finished"
    assert [(run["stored"], run["losses"]) for run in document["runs"]] == [(BLOCKS, 1)]
    with open_store(reading=True) as store:
        require_whole(store)
    wait_until_empty(lambda: block_processes(cluster, busy))


def test_a_driver_that_is_killed_is_resumed_from_elsewhere(cluster: RayNodes, store_url: str, tmp_path: Path) -> None:
    begun = sweep(request_file(tmp_path), "--cluster", "auto", RAY_ADDRESS=cluster.address)
    wait_for_block(begun, 5)
    begun.kill()
    begun.communicate()
    wait_until_empty(lambda: [*block_processes(cluster, "first"), *block_processes(cluster, "second")])
    with open_store(reading=True) as store:
        [left] = load_sweep(store, "last").runs
        assert 5 <= len(left.hosts) < BLOCKS
    resumed = sweep("--resume", "last", "--cluster", f"ray://127.0.0.1:{cluster.client_port}")
    _, errors = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, errors
    assert len(re.findall(r"^\[\d+ of", errors, re.MULTILINE)) == BLOCKS - len(left.hosts)
    with open_store(reading=True) as store:
        require_whole(store)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_on_this_machine_leaves_nothing_when_it_is_interrupted(
    end: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    begun = sweep(request_file(tmp_path, 5), HOME=str(tmp_path), **{MARK: "local"})
    wait_for_block(begun, 2)
    os.killpg(begun.pid, end)
    _, errors = begun.communicate(timeout=120)
    assert begun.returncode == 128 + end, errors
    assert "fairlap sweep --resume" in errors
    wait_until_empty(marked_local)
    assert not (tmp_path / ".ray").exists()
    resumed = sweep("--resume", "last", HOME=str(tmp_path), **{MARK: "local"})
    _, errors = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, errors
    with open_store(reading=True) as store:
        require_whole(store, 5)
    wait_until_empty(marked_local)


def test_a_sweep_on_this_machine_that_is_killed_leaves_nothing_and_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    begun = sweep(request_file(tmp_path, 5), **{MARK: "local"})
    wait_for_block(begun, 2)
    require_nothing_left_after_kill(begun)
    resumed = sweep("--resume", "last", **{MARK: "local"})
    _, errors = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, errors
    assert len(re.findall(r"^\[\d+ of", errors, re.MULTILINE)) <= 3
    with open_store(reading=True) as store:
        require_whole(store, 5)


def test_a_sweep_that_is_killed_while_ray_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    begun = sweep(request_file(tmp_path, 5), **{MARK: "local"})
    wait_until(lambda: ray_folders(descendants_of(begun.pid)))
    require_nothing_left_after_kill(begun)


def require_nothing_left_after_kill(begun: subprocess.Popen[str]) -> None:
    """Within ten seconds neither a process of its Ray, nor one of a block, nor the folder."""
    started = descendants_of(begun.pid)
    [folder] = ray_folders(started)
    assert folder.is_dir()
    begun.kill()
    killed_s = time.monotonic()
    begun.wait()
    wait_until_empty(lambda: {pid for pid in [*started, *marked_local()] if is_alive(pid)}, within_s=10.0)
    while folder.exists():
        assert time.monotonic() < killed_s + 10.0
        time.sleep(0.1)


def descendants_of(pid: int) -> list[int]:
    children = children_of(pid)
    return [*children, *(each for child in children for each in descendants_of(child))]


def ray_folders(processes: list[int]) -> set[Path]:
    """As Ray's first process is given it."""
    found = (re.search(rb"--log_dir=([^\0]+?)/session_", content(pid, "cmdline")) for pid in processes)
    return {Path(each[1].decode()) for each in found if each}


def is_alive(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is not None and stat.state not in ("Z", "X")


def marked_local() -> list[int]:
    return [pid for pid in process_ids() if f"{MARK}=local\0".encode() in content(pid, "environ")]


def block_processes(cluster: RayNodes, name: str) -> list[int]:
    """And contestants."""
    own = (b"fairlap.sweep.block_process", b"fairlap.worker")
    return [pid for pid in cluster.processes(name) if any(each in content(pid, "cmdline") for each in own)]


def the_busy_node(cluster: RayNodes, within_s: float = 60.0) -> str:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        for name in ("first", "second"):
            if block_processes(cluster, name):
                return name
        time.sleep(0.05)
    raise AssertionError("no node runs a block")
