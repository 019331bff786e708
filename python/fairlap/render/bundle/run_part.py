"""The run of a bundle, for whatever reads a run file; only where the check of the bundle finds nothing wrong."""

from __future__ import annotations

from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.machine.regular_file import content_of
from fairlap.render.bundle.archive import unpacked
from fairlap.render.bundle.contents import RUN
from fairlap.render.bundle.verify import CHANGED, verify


def checked_run_of(path: Path) -> bytes:
    content = content_of(path)
    found = verify(content, str(path))
    if not found.is_whole:
        raise InvalidRequest(
            f"{path} was changed since it was written: {found.problems[0]}; `fairlap verify {path}` lists all",
            code=CHANGED,
        )
    return unpacked(content, str(path)).parts[RUN]
