"""What a process's environment holds under each of the conditions.

The C library gives freed memory back to the kernel, or not, depending on the layout of the heap, which the
hash seed shifts. The same net then runs in two modes a factor of two apart. ``controlled`` takes that draw
away from every contestant alike; ``as-found`` leaves it in, since it is what users get.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairlap.machine.passed_environment import own_environment
from fairlap.race.plan import Block
from fairlap.request.work import Conditions
from fairlap.worker.process_options import KEPT_MEMORY

CONTROLLED_MEMORY: Mapping[str, str] = {**KEPT_MEMORY, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

OFFLINE: Mapping[str, str] = {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "OPENVINO_TELEMETRY": "0",
}
"""Telemetry and network access of frameworks are off under all conditions."""

PADDING = "FAIRLAP_PADDING"


def environment_of(block: Block, wanted: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Build the whole environment of one worker.

    It is the user's own without secrets but those that are ``passed``, what the adapter wants, and what the block drew.
    """
    variables = {**own_environment(passed), **OFFLINE, **wanted}
    variables["PYTHONHASHSEED"] = str(block.hash_seed)
    variables[PADDING] = "x" * block.padding_bytes
    if block.conditions == "controlled":
        variables.update(CONTROLLED_MEMORY)
    return variables


def described(conditions: Conditions, cores: tuple[int, ...]) -> str:
    """For a row: what was done to the process, or that nothing was."""
    if conditions == "as-found":
        return "as found: cores and the C library's memory behaviour untouched"
    settings = " ".join(f"{key}={value}" for key, value in CONTROLLED_MEMORY.items())
    return f"controlled: cores {','.join(map(str, cores))}; {settings}"
