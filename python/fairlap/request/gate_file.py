"""``gate.toml``: what a repository requires of a change, for ``fairlap gate``, ``pull-request`` and ``diff``.

``python -m fairlap.request.gate_file`` writes the JSON schema.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.errors import FairlapError
from fairlap.machine.files.atomic_files import write_output
from fairlap.request.race_request import schema_text
from fairlap.request.toml_file import read_toml
from fairlap.request.units import LargestSlowdown
from fairlap.verdict import MAX_SLOWDOWN, RequiredChange, required_changes_of

NAME = "gate.toml"
FILE = Path("docs/reference/gate-file.schema.json")


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class GateFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the command line replace what the file has for them."""

    max_slowdown: Annotated[LargestSlowdown | None, _about('Largest acceptable slowdown: "3%".')] = None
    strict: Annotated[bool, _about("Fail when inconclusive, too.")] = False
    require: Annotated[
        tuple[str, ...],
        _about('How other quantities may change against the baseline, such as "memory_peak<=+2%". All count.'),
    ] = ()


@dataclass(frozen=True)
class GateRules:
    """What decides, from the options and the file of the current folder."""

    max_slowdown: float
    strict: bool
    required: tuple[RequiredChange, ...]


def gate_rules(
    max_slowdown: float | None = None, *, strict: bool = False, require: Sequence[str] = (), folder: Path | None = None
) -> GateRules:
    """Combine the options with the file of this folder, or of the current one, where there is one."""
    path = Path(NAME) if folder is None else folder / NAME
    file = read_toml(path, GateFile, "the gate file") if path.is_file() else GateFile()
    bound = file.max_slowdown if max_slowdown is None else max_slowdown
    required = required_changes_of(require) if require else required_changes_of(file.require, str(path))
    return GateRules(MAX_SLOWDOWN if bound is None else float(bound), strict or file.strict, required)


if __name__ == "__main__":
    try:
        write_output(FILE, schema_text(GateFile).encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
