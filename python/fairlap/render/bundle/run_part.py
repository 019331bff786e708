"""The run of a bundle, for whatever reads a run file; only where the check of the bundle finds nothing wrong."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.files.regular_file import content_of
from fairlap.render.bundle.archive import unpacked
from fairlap.render.bundle.contents import RUN, SAMPLES, SampleFile
from fairlap.render.bundle.verify import CHANGED, verify
from fairlap.store.runs.run_file import SamplesOfProcess


def checked_run_of(path: Path) -> bytes:
    """Return the document that ``fairlap runs export`` writes: the run with its raw samples."""
    content = content_of(path)
    found = verify(content, str(path))
    if not found.is_whole:
        raise InvalidRequest(
            f"{path} was changed since it was written: {found.problems[0]}; `fairlap verify {path}` lists all",
            code=CHANGED,
        )
    parts = unpacked(content, str(path)).parts
    document = msgspec.json.decode(parts[RUN])
    document["samples"] = [
        SamplesOfProcess(each.block, each.contestant, each.quantity, parts[each.part])
        for each in msgspec.json.decode(parts[SAMPLES], type=list[SampleFile])
    ]
    return msgspec.json.encode(document)
