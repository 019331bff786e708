"""What differs between two machines, or between two runs on one of them.

Some facts describe the machine, others what was installed and set, others only the moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.machine import software, variables

# These change from minute to minute, or do not affect how fast the machine is.
_MOMENTARY = frozenset({"steal so far", "git revision", "git changes", "git branch"})
_GPU_MOMENTARY = (" clock", " pcie generation", " pcie width")  # an idle device lowers them

# Every run since the first version has recorded these, so a run without one of them could not read it.
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
    """Select what describes the machine and its system, without packages, variables and the moment."""
    return {
        name: value
        for name, value in facts.items()
        if not is_momentary(name) and not name.startswith((software.PREFIX, variables.PREFIX))
    }


def is_momentary(name: str) -> bool:
    return name in _MOMENTARY or (name.startswith("gpu ") and name.endswith(_GPU_MOMENTARY))


def comparable_facts(
    before: Mapping[str, str], after: Mapping[str, str], device: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Select the facts of each run that may explain a difference between their results.

    Packages are not among them, because a contestant reports its own version. Of GPUs only the one that was used is
    included, and its facts lose their number. A fact that only one run recorded is not a difference, because older
    versions of fairlap recorded fewer.
    """
    before, after = _with_one_gpu(before, device), _with_one_gpu(after, device)
    both = {name for name in before.keys() & after.keys() if not _explains_nothing(name)}
    set_in_either = {name for name in before.keys() | after.keys() if name.startswith(variables.PREFIX)}
    if not (is_whole(before) and is_whole(after)):
        set_in_either = set()
    names = both | set_in_either | _ALWAYS_RECORDED
    return _only(before, names), _only(after, names)


def is_whole(facts: Mapping[str, str]) -> bool:
    """Whether all current facts were looked for. The first versions of fairlap recorded ten, without ``memory``."""
    return "memory" in facts


def _explains_nothing(name: str) -> bool:
    return name.startswith(software.PREFIX) or is_momentary(name)


def _with_one_gpu(facts: Mapping[str, str], device: str) -> dict[str, str]:
    """``gpu 1 memory`` becomes ``gpu memory`` for device cuda:1. A race on the processor has no GPU."""
    found = {name: value for name, value in facts.items() if not _is_of_gpus(name)}
    if device == "cpu":
        return found
    own = f"gpu {device.partition(':')[2] or '0'}"
    found |= {name: facts[name] for name in ("driver", "cuda", "gpu mps") if name in facts}
    mine = {name: value for name, value in facts.items() if name == own or name.startswith(f"{own} ")}
    return found | {"gpu" + name.removeprefix(own): value for name, value in mine.items()}


def _is_of_gpus(name: str) -> bool:
    return name in ("driver", "cuda", "gpu") or name.startswith("gpu ")


def _only(facts: Mapping[str, str], names: set[str] | frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name in names}


@dataclass(frozen=True)
class FactDifference:
    """``str`` gives ``kernel 6.1 -> 6.8``."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def differences(
    before: Mapping[str, str], after: Mapping[str, str], *, momentary: bool = False
) -> list[FactDifference]:
    """Sorted by name. Facts of the moment are left out unless ``momentary`` is set."""
    names = sorted(name for name in before.keys() | after.keys() if momentary or not is_momentary(name))
    return [
        FactDifference(name, before.get(name, _absent(name)), after.get(name, _absent(name)))
        for name in names
        if before.get(name) != after.get(name)
    ]


def differences_text(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """One per line. Facts that an older fairlap did not look for are only counted."""
    found = differences(before, after)
    whole = is_whole(before) and is_whole(after)
    listed = [each for each in found if whole or (each.name in before and each.name in after)]
    lines = [f"  {each}" for each in listed]
    if len(listed) < len(found):
        lines.append(f"  and {len(found) - len(listed)} facts that only one of the runs recorded")
    return "\n".join(["between the machines:", *lines]) if lines else "between the machines: no known difference"


def _absent(name: str) -> str:
    if name.startswith(variables.PREFIX):
        return "not set"
    return "not installed" if name.startswith(software.PREFIX) else "not recorded"
