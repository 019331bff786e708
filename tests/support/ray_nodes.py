"""Ray nodes on one machine or on hosts of the tests, each of which can be killed, and known by a mark."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlap.machine.programs.processes import process_ids, process_stat
from processes_seen import content

MARK = "FAIRLAP_TEST_MARK"
_TIMES_TRIED = 4


class RayNodes:
    """Nodes of one cluster, each of whose processes carries a mark of the node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address, self.client_port = "", free_port()
        self._nodes: list[str] = []
        self._orphans: list[int] = []

    def start(self, name: str, *, head: bool = False, address: str = "", on: Sequence[str] = ()) -> None:
        """Start it, through a remote shell where ``on`` is one with its host."""
        self._nodes.append(name)
        where = ["--head", "--port=0", f"--temp-dir={self._folder}", "--num-cpus=0"]
        if not head:
            where = [f"--address={self.address}", "--num-cpus=1"]
        else:
            where += ["--include-dashboard=false", f"--ray-client-server-port={self.client_port}"]
        where += [f"--node-ip-address={address}"] if address else []
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *where, "--object-store-memory=100000000"]
        for _ in range(_TIMES_TRIED):  # Ray gives a node half a minute to start, which a busy machine may not
            done = subprocess.run(
                [*on, *command],
                env={**os.environ, MARK: name, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                break
            self.kill_all(name)
        assert done.returncode == 0, done.stdout + done.stderr
        if head:
            [self.address] = re.findall(r"ray start --address='(\S+)'", done.stdout)

    def processes(self, name: str) -> list[int]:
        return [pid for pid in process_ids() if f"{MARK}={name}\0".encode() in content(pid, "environ")]

    def kill(self, name: str) -> None:
        """Kill the node itself; its processes notice."""
        [raylet] = [pid for pid in self.processes(name) if b"raylet/raylet" in content(pid, "cmdline").split(b"\0")[0]]
        self._orphans += children_of(raylet)
        os.kill(raylet, signal.SIGKILL)

    def kill_all(self, name: str) -> None:
        """Kill everything that runs there, as when the machine is switched off."""
        for pid in self.processes(name):
            self._orphans += children_of(pid)
            kill(pid)
        for pid in self._orphans:
            if content(pid, "cmdline").startswith(b"ray::"):
                kill(pid)

    def stop(self) -> None:
        """Ray's agents end a minute after their node, and hide their environment behind a title."""
        for name in self._nodes:
            self.kill_all(name)


def children_of(parent: int) -> list[int]:
    stats = {pid: process_stat(pid) for pid in process_ids()}
    return [pid for pid, stat in stats.items() if stat is not None and stat.parent == parent]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """Start a head that only coordinates, and two nodes."""
    with ray_of_tests() as nodes:
        nodes.start("head", head=True)
        nodes.start("first")
        nodes.start("second")
        yield nodes


@contextmanager
def ray_of_tests() -> Iterator[RayNodes]:
    """Stop all nodes that are started."""
    with tempfile.TemporaryDirectory(prefix="fl-", ignore_cleanup_errors=True) as folder:  # short paths of sockets
        nodes = RayNodes(Path(folder))
        try:
            yield nodes
        finally:
            nodes.stop()
