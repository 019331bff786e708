"""Which facts say what a machine is, which say what was installed and set, and which only what was so at the time.

What differs between two machines, or between two runs on one of them, in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.machine import software, variables

# These change from minute to minute, or say nothing about how fast the machine is.
_OF_THE_MOMENT = frozenset({"steal so far", "git revision", "git changes"})
_GPU_OF_THE_MOMENT = (" clock", " pcie generation", " pcie width")  # an idle device lowers them

# What runs have recorded from the beginning. In one that lacks a fact of these, it was not there to be read.
_ALWAYS_RECORDED = frozenset(
    {
        "cpu model",
        "cores",
        "architecture",
        "kernel",
        "operating system",
        "C library",
        "governor",
        "huge pages",
        "hypervisor",
        "python",
    }
)


def lasting(facts: Mapping[str, str]) -> dict[str, str]:
    """What the machine and its system are, whatever is installed on it, set in it, or going on at the time."""
    return {
        name: value
        for name, value in facts.items()
        if not is_of_the_moment(name) and not name.startswith((software.PREFIX, variables.PREFIX))
    }


def is_of_the_moment(name: str) -> bool:
    return name in _OF_THE_MOMENT or (name.startswith("gpu ") and name.endswith(_GPU_OF_THE_MOMENT))


def weighed(before: Mapping[str, str], after: Mapping[str, str], device: str) -> tuple[dict[str, str], dict[str, str]]:
    """Of each run the facts that may explain a difference between their figures.

    Packages are not among them: a contestant tells the version that it ran itself. Of GPUs only the one that was raced
    on is, and its facts lose their number. A fact that only one run recorded is no difference, since older versions
    of fairlap recorded fewer.
    """
    before, after = _with_one_gpu(before, device), _with_one_gpu(after, device)
    both = {name for name in before.keys() & after.keys() if not _says_nothing(name)}
    set_in_either = {name for name in before.keys() | after.keys() if name.startswith(variables.PREFIX)}
    if not (is_whole(before) and is_whole(after)):
        set_in_either = set()
    names = both | set_in_either | _ALWAYS_RECORDED
    return _only(before, names), _only(after, names)


def is_whole(facts: Mapping[str, str]) -> bool:
    """Whether all facts of today were looked for; the first versions of fairlap kept ten, and no memory's size."""
    return "memory" in facts


def _says_nothing(name: str) -> bool:
    return name.startswith(software.PREFIX) or is_of_the_moment(name)


def _with_one_gpu(facts: Mapping[str, str], device: str) -> dict[str, str]:
    """``gpu 1 memory`` becomes ``gpu memory`` for device cuda:1. A race on the processor has no GPU at all."""
    found = {name: value for name, value in facts.items() if not _is_of_gpus(name)}
    if device == "cpu":
        return found
    own = f"gpu {device.partition(':')[2] or '0'}"
    found |= {name: facts[name] for name in ("driver", "cuda") if name in facts}
    mine = {name: value for name, value in facts.items() if name == own or name.startswith(f"{own} ")}
    return found | {"gpu" + name.removeprefix(own): value for name, value in mine.items()}


def _is_of_gpus(name: str) -> bool:
    return name in ("driver", "cuda", "gpu") or name.startswith("gpu ")


def _only(facts: Mapping[str, str], names: set[str] | frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name in names}


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
