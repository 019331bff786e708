"""Files that are whole or not there: written beside and renamed."""

from __future__ import annotations

import os
from pathlib import Path

from fairlap.errors import FairlapError


def write_beside(path: Path, content: bytes) -> None:
    """A full disk or a killed process leaves the last whole file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            beside.write_bytes(content)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise FairlapError(f"{path} could not be written: {error.strerror}") from None
