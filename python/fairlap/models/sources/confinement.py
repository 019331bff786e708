"""A process that reads a user's model: its sandbox, beneath the checks of each kind, and its replies."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from fairlap.errors import shortened
from fairlap.machine.hardware.kernel import memory_bytes
from fairlap.machine.programs.confined_home import moved_home
from fairlap.machine.programs.sandbox import confine, is_confined, limit
from fairlap.machine.root import THIS_MACHINE
from fairlap.models.sources.given_data.reading import given_files, given_inputs
from fairlap.models.sources.registry import require_kind
from fairlap.request.fields.source import Source

LIMIT_S = 1800.0  # of opening a model

_REFUSED = re.compile("permission ?denied|operation not permitted", re.IGNORECASE)


def confine_to(source: Source, files: Iterable[str], *writable: Path, cpu_s: float = LIMIT_S) -> None:
    """Leave this process the model's files and the user's inputs, and let it write into these folders.

    The last folder is for temporary files. A script for inputs is the user's own and runs before. So does all code
    where the files of a model are not known, as for a function, and where the user trusts it.

    The kernel limits the processes of a user, not those of a process, so none but those of ``SourceKind.starts`` can be
    started instead.
    """
    kind = require_kind(source)
    read = tuple(map(Path, files))
    limit(cpu_s * (os.cpu_count() or 1), memory_bytes(THIS_MACHINE).get("MemTotal"))
    if source.trust or not read:
        return
    if ".py:" in source.inputs:
        given_inputs(source.inputs, source.folder)
    whole = (*kind.readable(source), *given_files(source))
    others = [file for file in read if not any(file.is_relative_to(each) for each in whole)]
    confine((*whole, *others, moved_home(writable)), writable, starts=kind.starts)


def explained(source: Source, code: str, message: str, error: BaseException) -> tuple[str, str]:
    """Explain an error, since what the sandbox refused surfaces as any error of any library."""
    if not is_confined() or code != "E_SOURCE" or not any(map(_was_refused, _chain(error))):
        return code, message
    return "E_SANDBOX", (
        f"{source.shown} was refused a file, a program or the network, which a model gets only with trust; add --trust "
        f"if you trust it ({shortened(message)})"
    )


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


def _was_refused(error: BaseException) -> bool:
    return isinstance(error, PermissionError) or _REFUSED.search(str(error)) is not None


def replies() -> BinaryIO:
    """Take the standard output for replies alone: what a model prints goes to standard error from now on.

    Where memory runs out, the kernel ends this process and not its parent.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return kept
