"""A folder for as long as a process lives, also for files that workers read.

A process that is killed leaves its folder behind; the next one removes it.

Each folder has a file that its process holds locked, which the kernel frees however the process ends. A folder without
such a file belongs to another program, or to a process that has not locked it yet, and is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

_PREFIX = "fairlap-"
_LOCK = ".in-use"

SHARED_MEMORY = Path("/dev/shm")
"""Where Linux keeps files that processes map to share memory."""


class ScratchFolder:
    """Removed by ``remove``, at the end of ``with``, or after a kill by ``remove_abandoned`` of a later process."""

    def __init__(self, within: Path | None = None) -> None:
        """``within`` is ``SHARED_MEMORY``, or the folder of temporary files."""
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=within))
        lock = self.path / f"{_LOCK}.new"
        self._held = lock.open("w")
        with contextlib.suppress(OSError):  # some file systems have no locks: then nothing shows that it is abandoned
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.rename(self.path / _LOCK)  # only now, so that no other process finds it unlocked

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._held.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def remove_abandoned() -> None:
    """Folders of this user's processes that were killed. What cannot be removed stays."""
    for within in (tempfile.gettempdir(), SHARED_MEMORY):
        with contextlib.suppress(OSError):
            for entry in os.scandir(within):
                with contextlib.suppress(OSError):
                    if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False) and _is_abandoned(entry):
                        shutil.rmtree(entry.path, ignore_errors=True)


def _is_abandoned(folder: os.DirEntry[str]) -> bool:
    if folder.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    try:
        found = os.open(Path(folder.path, _LOCK), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(found)
    return True
