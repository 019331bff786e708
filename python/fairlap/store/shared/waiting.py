"""Which runs of this machine have still to be sent to a shared store.

Each has a file next to the store that names the database, so that they survive a kill, a repair and a full disk, and
never reach another database.
"""

from __future__ import annotations

import contextlib
import glob
from pathlib import Path

from fairlap.machine.files.private_files import make_private_file
from fairlap.store.errors import StoreError

_ENDING = ".unsent"


def add(store: Path, run: str, target: str) -> None:
    try:
        make_private_file(_mark(store, run))
        _mark(store, run).write_text(target, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{store.parent} cannot be written: {error.strerror}") from None


def done(store: Path, run: str) -> None:
    with contextlib.suppress(OSError):
        _mark(store, run).unlink()


def waiting(store: Path, target: str) -> list[str]:
    """List the waiting runs, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        for mark in sorted(store.parent.glob(f"{glob.escape(store.name)}.*{_ENDING}")):
            with contextlib.suppress(OSError):
                if mark.read_text(encoding="utf-8") == target:
                    found.append(mark.name.removeprefix(f"{store.name}.").removesuffix(_ENDING))
    return found


def renamed(store: Path, run: str, new: str) -> None:
    with contextlib.suppress(OSError):
        _mark(store, run).replace(_mark(store, new))


def _mark(store: Path, run: str) -> Path:
    return store.with_name(f"{store.name}.{run}{_ENDING}")
