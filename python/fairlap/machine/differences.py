"""What differs between two machines, or between two runs on one of them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.machine import software, variables
from fairlap.machine.kinds import is_of_the_moment, is_whole


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
    return [
        FactDiffers(name, before.get(name, _absent(name)), after.get(name, _absent(name)))
        for name in names
        if before.get(name) != after.get(name)
    ]


def differences_text(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """One on each line. What a run of an older fairlap did not look for is only counted."""
    found = differences(before, after)
    whole = is_whole(before) and is_whole(after)
    told = [each for each in found if whole or (each.name in before and each.name in after)]
    lines = [f"  {each}" for each in told]
    if len(told) < len(found):
        lines.append(f"  and {len(found) - len(told)} facts that only one of the runs recorded")
    return "\n".join(["between the machines:", *lines]) if lines else "between the machines: no difference is known"


def _absent(name: str) -> str:
    if name.startswith(variables.PREFIX):
        return "not set"
    return "not installed" if name.startswith(software.PREFIX) else "not recorded"
