"""The hash of a folder's files, by which a ledger knows what it has judged, and a race what it builds."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from fairlap.errors import FairlapError, reason_of

# What tools write while code is tested, raced or committed; none of it is the code.
_LEFT_OUT = frozenset({
    ".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".venv",
})  # fmt: skip
_LEFT_OUT_ENDS = (".pyc", ".pyo")
_CHUNK_BYTES = 2**20


def folder_hash(folder: Path) -> str:
    """Combine names, contents and whether a file can be executed. A link counts by where it leads, and is not followed.

    Version control, bytecode and caches of tools are left out.
    """
    found = hashlib.sha256()
    try:
        for path in code_files(folder):
            mode = path.lstat().st_mode
            kind = b"l" if stat.S_ISLNK(mode) else b"x" if mode & stat.S_IXUSR else b"f"
            found.update(b"%b %b\0%b\0" % (kind, os.fsencode(path.relative_to(folder)), _content_hash(path, mode)))
    except OSError as error:
        raise FairlapError(f"cannot read {error.filename or folder}: {reason_of(error)}", code="E_FILE") from None
    return found.hexdigest()


def code_files(folder: Path) -> list[Path]:
    """List those that count: regular files and links. Devices and pipes are no code."""
    found = []

    def fail(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        links = [name for name in folders if Path(where, name).is_symlink()]
        found += [Path(where, name) for name in (*names, *links) if _counts(Path(where, name))]
    return sorted(found)


def _counts(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not path.name.endswith(_LEFT_OUT_ENDS) and (stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def _content_hash(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return hashlib.sha256(os.fsencode(path.readlink())).digest()
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(chunk)
    return found.digest()
