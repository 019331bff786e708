"""What differs between two machines, or between two runs on one of them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.machine.kinds import is_of_the_moment, is_whole

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


def differences_text(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """One on each line. What a run of an older fairlap did not look for is only counted."""
    found = differences(before, after)
    whole = is_whole(before) and is_whole(after)
    told = [each for each in found if whole or NOT_RECORDED not in (each.before, each.after)]
    lines = [f"  {each}" for each in told]
    if len(told) < len(found):
        lines.append(f"  and {len(found) - len(told)} facts that only one of the runs recorded")
    return "\n".join(["between the machines:", *lines]) if lines else "between the machines: no difference is known"
