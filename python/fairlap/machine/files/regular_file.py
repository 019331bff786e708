"""Reading a file that a user named."""

from __future__ import annotations

import errno
from pathlib import Path


def content_of(path: Path) -> bytes:
    """OSError for a device or a pipe."""
    require_regular(path)
    return path.read_bytes()


def require_regular(path: Path) -> None:
    """Raise OSError for a device or a pipe, which may have no end.

    What is not there, or is a folder, is left to the reader.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is not a regular file")
