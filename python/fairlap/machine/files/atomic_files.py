"""Files that are complete or absent: written under a temporary name and renamed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlap.errors import NotWritten
from fairlap.machine.files.private_files import make_private_file


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file as a whole, so that a full disk or a killed process leaves the previous one.

    A device or a pipe is written to, never replaced. The mode is that of the previous file, else what the umask leaves;
    a private file is for its owner alone.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():  # to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with atomic_replacement(target, private=private) as temporary:
        if target.exists() and not private:
            temporary.touch()
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.write_bytes(content)


@contextmanager
def atomic_replacement(path: Path, *, private: bool) -> Iterator[Path]:
    """Yield a file to write, which replaces ``path`` at the end; each thread has its own."""
    temporary = _temporary(path)
    try:
        if private:
            make_private_file(temporary)
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


def why_not_writable(path: Path) -> str:
    """Why ``write_atomically`` would fail, found out before there is something to write; empty where it would not."""
    try:
        if path.exists() and not path.is_file():
            return "" if os.access(path, os.W_OK) else os.strerror(errno.EACCES)
        temporary = _temporary(Path(os.path.realpath(path)))
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def why_no_folder(path: Path) -> str:
    """Why a folder could not be made here, with those above it, or not be written to; found out without making it."""
    try:
        existing = next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))
        if not existing.is_dir():
            return os.strerror(errno.ENOTDIR)
        temporary = existing / f".fairlap.{os.getpid()}.{threading.get_ident()}"
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def write_output(path: Path, content: bytes) -> None:
    """Write a file atomically, and raise what prevents it as an error of one line."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise NotWritten(f"{path} could not be written: {error.strerror}") from None
