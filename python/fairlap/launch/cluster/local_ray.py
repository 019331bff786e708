"""A Ray node on this machine that ends with the process that started it, however that one ends.

Ray's own processes follow a killed driver within a minute, and leave their folder. So the node is started by a process
that leads a session. When its standard input closes, it kills what is in that session and removes the folder. If it is
killed itself, the kernel ends most of Ray with it, and the next race or sweep removes the folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from select import select

from fairlap.errors import shortened
from fairlap.machine.files.scratch_folder import ScratchFolder, remove_abandoned
from fairlap.worker.guardian import living_processes

_OBJECTS_BYTES = 256_000_000
_KILLED_WITHIN_S = 5.0
_ENDED_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.02
_STARTED, _FAILED = "started", "failed"
_NO_TOKEN = "nothing has this token"


class NotStarted(Exception):
    """The message gives the reason."""


@contextlib.contextmanager
def local_ray(within_s: float) -> Iterator[str]:
    """Start a node that lasts until the end of ``with``, in this process's environment, and yield its address."""
    remove_abandoned()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fairlap.launch.cluster.local_ray"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield _address(process, within_s)
    finally:
        _end(process)


def _address(process: subprocess.Popen[str], within_s: float) -> str:
    assert process.stdout is not None
    if not select([process.stdout], [], [], within_s)[0]:
        raise NotStarted(f"it did not start within {within_s:g} seconds")
    outcome, _, text = process.stdout.readline().strip().partition(" ")
    if outcome != _STARTED:
        raise NotStarted(text or "its process ended")
    return text


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.communicate(timeout=_ENDED_WITHIN_S)  # closes its input
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def main() -> None:
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what Ray prints
        folder = ScratchFolder()  # sockets in it have paths of at most 107 bytes
        threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
        print(*_start(folder), file=answer)
    threading.Event().wait()  # the kernel ends Ray's processes together with the thread that started them


def _start(folder: ScratchFolder) -> tuple[str, str]:
    try:
        import ray

        options = {"include_dashboard": False, "object_store_memory": _OBJECTS_BYTES, "_temp_dir": str(folder.path)}
        cores = len(os.sched_getaffinity(0))
        ray.init("local", num_cpus=cores, log_to_driver=False, logging_level=logging.CRITICAL, **options)
        return _STARTED, ray.get_runtime_context().gcs_address
    except Exception as error:
        return _FAILED, shortened(str(error))


def _end_with_parent(folder: ScratchFolder) -> None:
    """In a thread, since Ray may just be starting."""
    os.read(sys.stdin.fileno(), 1)
    deadline_s = time.monotonic() + _KILLED_WITHIN_S
    while (left := living_processes(os.getsid(0), _NO_TOKEN)) and time.monotonic() < deadline_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    folder.remove()
    os._exit(0)


if __name__ == "__main__":
    main()
