"""The container that a contestant's worker runs in: its command, and its processes as this machine sees them.

The worker speaks the protocol over its standard input and output, which the client connects to its pipes. Its guardian
is the first process of the container: when the input closes, because the client or fairlap ended, it ends what is below
it and itself, and the kernel ends all else that is in the container.

The processes have other ids on this machine, by which they are stopped, bound to cores and looked at like those of any
other worker. They run as the same user, or that would be forbidden.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from fairlap.errors import InvalidRequest, shortened
from fairlap.launch.containers.images import ISOLATED, PYTHON, Image, NoImage, client, host_pid_of, open_files, remove
from fairlap.launch.environments import WORKER_NEEDS, linked_packages
from fairlap.launch.started_worker import over_pipes
from fairlap.launch.wire import Wire
from fairlap.launch.worker_lost import OomKills, WorkerLost, loss_from_status
from fairlap.machine.control_group import shares_cpu_with
from fairlap.machine.programs.containers import LABEL
from fairlap.machine.programs.orphans import in_own_session
from fairlap.machine.programs.process_tree import descendants

# What a container is given of this environment: fairlap, plug-ins, and what the worker needs and the image lacks. Each
# module is mounted read-only below one folder, which is searched first; so nothing of this environment hides a module
# of the image.
ROOT = "/fairlap-worker"
SEARCHED = f"{ROOT}/python/packages"  # two levels, since a checkout has links that lead out of its packages
MODULES: Mapping[str, str] = {package: package for package in WORKER_NEEDS} | {"nvidia-ml-py": "pynvml"}
"""By package, what is imported of it."""

_NOT_MODULES = ("..", "__pycache__", "example.py")


def own_modules(missing: tuple[str, ...]) -> dict[Path, str]:
    """List what to mount, and where."""
    lacking = [package for package in WORKER_NEEDS if MODULES[package] in missing]
    tops = [*linked_packages(), *(top for package in lacking for top in _of(package))]
    found = {top: f"{SEARCHED}/{top.name}" for top in tops}
    for top in tops:
        if top.is_dir():
            found |= _linked_from(top)
    return found


def _of(package: str) -> list[Path]:
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        raise NoImage(f"neither the image nor this environment has {package}, which fairlap's worker needs") from None
    names = sorted({each.parts[0] for each in installed.files or ()} - {*_NOT_MODULES})
    return [Path(str(installed.locate_file(name))) for name in names]


def _linked_from(top: Path) -> dict[Path, str]:
    """Find the folders outside a package that its links lead to, as the models of a checkout."""
    found = {}
    for each in top.iterdir():
        target = str(each.readlink()) if each.is_symlink() else ""
        place = os.path.normpath(f"{SEARCHED}/{top.name}/{target}")
        if target.startswith("..") and place.startswith(f"{ROOT}/"):
            found[each.resolve()] = place
    return found


_SEARCHED = "PYTHONPATH"
_OF_SIGNALS = 128
_OF_THE_CLIENT = 125  # for which the service could not start the container
E_IMAGE = NoImage.code


@dataclass(frozen=True)
class Container:
    image: Image
    missing: tuple[str, ...] = ()  # modules that the worker needs and the image lacks
    readable: tuple[str, ...] = ()  # paths of this machine that it sees
    writable: tuple[str, ...] = ()
    folder: str = "/"  # in which it runs

    def started(
        self, inside: Sequence[str], environment: Mapping[str, str], token: str
    ) -> tuple[subprocess.Popen[bytes], Wire]:
        """Start the client, with the worker's pipes for its input, output and errors."""
        command = self.command(inside, environment, token)

        def start(read: int, write: int, prints: int) -> subprocess.Popen[bytes]:
            return in_own_session(command, guarded=False, stdin=read, stdout=write, stderr=prints)

        return over_pipes("the client of containers", start)

    def command(self, inside: Sequence[str], environment: Mapping[str, str], token: str) -> list[str]:
        places = [SEARCHED, dict(self.image.variables).get(_SEARCHED, "")]
        variables = {**environment, _SEARCHED: os.pathsep.join(filter(None, places))}
        return [
            client(), "run", "--rm", "--interactive", *ISOLATED, "--ipc=host",
            f"--user={os.getuid()}:{os.getgid()}", open_files(),
            f"--name={name_of(token)}", f"--label={LABEL}={token}", f"--workdir={self.folder}",
            *(f"--mount={each}" for each in self._mounts()),
            *(f"--env={each}" for each in _given(variables)),
            f"--entrypoint={PYTHON}", self.image.id, *inside,
            "--read", "0", "--write", "1", "--parent", "0",
        ]  # fmt: skip

    def _mounts(self) -> list[str]:
        own = [_mount(str(path), place, writable=False) for path, place in own_modules(self.missing).items()]
        given = {path: path in self.writable for path in sorted({*self.readable, *self.writable})}
        return own + [_mount(path, path, writable=writable) for path, writable in given.items()]


def name_of(token: str) -> str:
    return f"fairlap-{token}"


@dataclass(frozen=True)
class HostProcesses:
    """Of a container, by their ids on this machine."""

    first: int
    worker: int


def processes_of(token: str, worker: int) -> HostProcesses:
    """Find them, where ``worker`` is the id that the worker has in its container."""
    first = host_pid_of(name_of(token))
    if first and _id_inside(first) == 1:
        for pid in (first, *descendants(first)):
            if _id_inside(pid) == worker and _may_be_stopped(pid):
                return HostProcesses(first, pid)
    raise WorkerLost(
        "failed",
        "the processes of its container are not visible here, or belong to another user, so they could not be stopped "
        "in the turns of others; run fairlap on the machine of the Docker service, outside of containers",
        phase="start",
        code=E_IMAGE,
    )


def run_as_here(pids: Sequence[int], cores: Collection[int] | None) -> bool:
    """Give processes that have started nothing yet the cores, and the priority that others inherit from this one.

    Return whether they also share the CPU with others as processes of this machine do.
    """
    cores = os.sched_getaffinity(0) if cores is None else cores
    try:
        for pid in pids:
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, 0))
                os.sched_setaffinity(thread, cores)
                if os.sched_getaffinity(thread) != set(cores):
                    listed = ",".join(map(str, sorted(cores)))
                    raise InvalidRequest(f"not all of the cores {listed} are available to containers")
    except OSError as error:
        raise NoImage(f"the container cannot run as other contestants do: {error.strerror}") from None
    return shares_cpu_with(pids)


def await_end(process: subprocess.Popen[bytes], token: str, within_s: float) -> None:
    """Wait until the client reports that the container is gone, and remove it where it does not in time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
        return
    with contextlib.suppress(NoImage):
        remove(name_of(token))


def loss_in_container(status: int, phase: str, printed: bytes, before: OomKills) -> WorkerLost:
    """As of a process of this machine, but for one that the service could not start."""
    if status == _OF_THE_CLIENT:
        lines = printed.decode("utf-8", "replace").splitlines()
        why = [each for each in lines if each.strip() and "--help" not in each] or ["no container was started"]
        return WorkerLost("failed", shortened(why[-1]), phase=phase, code=E_IMAGE)
    return loss_from_status(_OF_SIGNALS - status if status > _OF_SIGNALS else status, phase, printed, before)


def _id_inside(pid: int) -> int:
    """Its id in the innermost namespace that it is in; 0 where the kernel does not show it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    ids = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return int(ids[-1]) if len(ids) > 1 else 0


def _may_be_stopped(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _given(variables: Mapping[str, str]) -> list[str]:
    """Name those that the client has too, whose values, which may be secret, are then not in its command line."""
    return [name if os.environ.get(name) == value else f"{name}={value}" for name, value in variables.items()]


def _mount(source: str, target: str, *, writable: bool) -> str:
    """Write one as the client reads it, which is as a line of CSV."""
    line = io.StringIO()
    parts = ["type=bind", f"source={source}", f"target={target}", *(() if writable else ("readonly",))]
    csv.writer(line, lineterminator="").writerow(parts)
    return line.getvalue()
