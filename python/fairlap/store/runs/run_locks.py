"""Whether the process that records a run still lives: it holds a lock, which the kernel frees however it ends.

The lock is a file next to the store, one for each run, so that it also works between containers that share a folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import IO

from fairlap.machine.files.private_files import private_opener

_LOOKS = 50  # looking whether it is held takes it for a moment
_BETWEEN_LOOKS_S = 0.01
_RESERVE_BYTES = 2**18


def hold(store: Path, run: str) -> IO[str]:
    """Keep what is returned open as long as the run goes on. BlockingIOError when another process holds it."""
    for _ in range(_LOOKS):
        mark = _mark(store, run)
        file = open(mark, "a", opener=private_opener)  # noqa: SIM115  (leaves the reserve of another holder as it is)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            time.sleep(_BETWEEN_LOOKS_S)
            continue
        except OSError:
            return file  # some network file systems have no locks
        if _is_there(store, run, file):
            return file
        file.close()  # the previous holder removed it after it was opened
    raise BlockingIOError


def reserve(file: IO[str]) -> None:
    """Space in the mark of a run, so that the run's end can be written on a disk that has become full."""
    with contextlib.suppress(OSError, AttributeError):
        os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)


def give_up_reserve(file: IO[str]) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)


def is_held(store: Path, run: str) -> bool:
    """Check whether a process holds the run; True also when locks do not work here."""
    try:
        with _mark(store, run).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def let_go(store: Path, run: str, file: IO[str] | None = None) -> None:
    with contextlib.suppress(OSError):
        _mark(store, run).unlink(missing_ok=True)
    if file is not None:
        file.close()


def _is_there(store: Path, run: str, file: IO[str]) -> bool:
    try:
        return os.path.samestat(_mark(store, run).stat(), os.fstat(file.fileno()))
    except OSError:
        return False


def _mark(store: Path, run: str) -> Path:
    return store.with_name(f"{store.name}.{run}.running")
