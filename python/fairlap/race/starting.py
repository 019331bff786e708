"""How a worker's process comes to be: its pipes, its session, its cores, its limit of memory.

Nothing runs between fork and exec, where a parent with threads could lock itself up.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairlap.errors import NotAvailable, WrongRequest
from fairlap.race.wire import Wire
from fairlap.race.worker_lost import WorkerLost


def started(
    command: Sequence[str], environment: Mapping[str, str], cores: Collection[int] | None
) -> tuple[subprocess.Popen[bytes], Wire]:
    """The worker reads requests and writes replies on descriptors of its own; all that it prints goes a third way."""
    for_worker_read, requests = os.pipe()
    replies, for_worker_write = os.pipe()
    prints, for_worker_print = os.pipe()
    given = (for_worker_read, for_worker_write)
    options = ("--read", str(given[0]), "--write", str(given[1]), "--parent", str(os.getpid()))
    try:
        with _on_cores(cores):
            process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.DEVNULL,
                stdout=for_worker_print,
                stderr=for_worker_print,
                env=environment,
                pass_fds=given,
                start_new_session=True,
            )
    except BaseException as error:
        for fd in (requests, replies, prints):
            os.close(fd)
        if isinstance(error, OSError):
            raise WorkerLost("failed", f"{command[0]} cannot be started: {error.strerror}", phase="start") from None
        raise
    finally:
        for fd in (*given, for_worker_print):
            os.close(fd)
    return process, Wire(requests, replies, prints, process)


@contextmanager
def _on_cores(cores: Collection[int] | None) -> Iterator[None]:
    """A child has its parent's cores from its first instruction on, so the parent goes there for a moment."""
    if cores is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise NotAvailable("this system binds no process to cores; race under as-found conditions")
    before = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
        if os.sched_getaffinity(0) != set(cores):
            raise WrongRequest(f"the cores {','.join(map(str, cores))} are not all to be had here")
        yield
    finally:
        os.sched_setaffinity(0, before)


def limit_memory(pid: int, limit_bytes: int) -> None:
    """Of address space, for the worker and each of its children. It is set before the worker is asked for anything."""
    import resource

    if not hasattr(resource, "prlimit"):
        raise NotAvailable("this system limits no other process's memory")
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))
