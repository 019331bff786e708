"""A worker's process as it is started: its command, pipes, cores and limit of memory.

Nothing runs between fork and exec, where a parent with threads could deadlock.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.launch.wire import Wire
from fairlap.launch.worker_lost import WorkerLost
from fairlap.machine.programs.orphans import in_own_session


def python_worker(python: str | Path = sys.executable) -> tuple[str, ...]:
    """Build the command of fairlap's own worker, which does not search the current folder for modules."""
    return (str(python), "-P", "-m", "fairlap.worker")


def start_process(
    command: Sequence[str], environment: Mapping[str, str], cores: Collection[int] | None
) -> tuple[subprocess.Popen[bytes], Wire]:
    """Start the process with separate descriptors for requests and replies, and a third one for what it prints."""

    def start(read: int, write: int, prints: int) -> subprocess.Popen[bytes]:
        options = ("--read", str(read), "--write", str(write), "--parent", str(os.getpid()))
        with _on_cores(cores):
            return in_own_session(
                [*command, *options],
                guarded=False,
                stdin=subprocess.DEVNULL,
                stdout=prints,
                stderr=prints,
                env=environment,
                pass_fds=(read, write),
            )

    return over_pipes(command[0], start)


def over_pipes(
    program: str, start: Callable[[int, int, int], subprocess.Popen[bytes]]
) -> tuple[subprocess.Popen[bytes], Wire]:
    """Give ``start`` the worker's ends of three pipes: what it reads, what it writes, and where it prints."""
    for_worker_read, requests = os.pipe()
    replies, for_worker_write = os.pipe()
    prints, for_worker_print = os.pipe()
    try:
        process = start(for_worker_read, for_worker_write, for_worker_print)
    except BaseException as error:
        for fd in (requests, replies, prints):
            os.close(fd)
        if isinstance(error, OSError):
            message = f"{program} cannot be started: {error.strerror}"
            raise WorkerLost("failed", message, phase="start", code="E_START") from None
        raise
    finally:
        for fd in (for_worker_read, for_worker_write, for_worker_print):
            os.close(fd)
    return process, Wire(requests, replies, prints, process)


@contextmanager
def _on_cores(cores: Collection[int] | None) -> Iterator[None]:
    """Move this process to the cores for a moment, because a child inherits the cores of its parent."""
    if cores is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise NotAvailable("this system cannot bind a process to cores; use --conditions as-found")
    before = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
        if os.sched_getaffinity(0) != set(cores):
            raise InvalidRequest(f"not all of the cores {','.join(map(str, cores))} are available to this process")
        yield
    finally:
        os.sched_setaffinity(0, before)


def limit_memory(pid: int, limit_bytes: int) -> None:
    """Limit the address space of the worker and of each of its children, before the first request."""
    import resource

    if not hasattr(resource, "prlimit"):
        raise NotAvailable("this system cannot limit the memory of another process")
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))
