"""What differs between two machines, or between two runs on one of them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.machine.kinds import is_of_the_moment

NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class FactDiffers:
    """``str`` gives the words: ``kernel 6.1 -> 6.8``."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def differences(before: Mapping[str, str], after: Mapping[str, str], *, passing: bool = False) -> list[FactDiffers]:
    """Sorted by name. What changes from minute to minute is left out, unless ``passing`` asks for it."""
    names = sorted(name for name in before.keys() | after.keys() if passing or not is_of_the_moment(name))
    rows = [FactDiffers(name, before.get(name, NOT_RECORDED), after.get(name, NOT_RECORDED)) for name in names]
    return [row for row in rows if row.before != row.after]
