"""Files that are whole or not there: written beside and renamed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlap.errors import FairlapError


def write_whole(path: Path, content: bytes) -> None:
    """A full disk or a killed process leaves the last whole file. A device or a pipe is written to, never replaced."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():  # to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with written_beside(target) as beside:
        beside.write_bytes(content)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Where to write what takes the path's place when it is whole. No two threads write to the same."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_for_user(path: Path, content: bytes) -> None:
    """The same, and what stands in the way in one line."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise FairlapError(f"{path} could not be written: {error.strerror}") from None
