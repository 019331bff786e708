"""What a search has found so far, in a file that survives Ctrl-C and a kill: the same command goes on from it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlap.bisection.readings import Reading
from fairlap.machine.files.atomic_files import write_atomically

_NAME = "search.json"


class Skipped(msgspec.Struct, frozen=True):
    """Why a commit cannot be raced."""

    reason: str
    code: str


class SavedSearch(msgspec.Struct, kw_only=True):
    """The first reading is of the bad end."""

    readings: list[Reading] = []
    skipped: dict[int, Skipped] = {}  # by position
    built: set[str] = set()  # commits whose trees are complete
    race_s: float = 0.0  # of all races together
    build_s: float = 0.0
    builds: int = 0

    @property
    def blocks(self) -> int:
        return sum(len(each.log_ratios) for each in self.readings)


def read_search(folder: Path) -> SavedSearch:
    """Begin where there is none, or none that can be read."""
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=SavedSearch)
    except (OSError, msgspec.DecodeError):
        return SavedSearch()


def write_search(folder: Path, found: SavedSearch) -> None:
    write_atomically(folder / _NAME, msgspec.json.encode(found), private=True)
