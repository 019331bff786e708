"""What calls allocate, and the library that counts it, which is preloaded into processes that are to count."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

LIBRARY = Path(__file__).resolve().parent.parent / "engine" / "libfairlap_allocations.so"
_PRELOAD = "LD_PRELOAD"


class Allocations(msgspec.Struct, frozen=True):
    """Of one call, the median of several: by ``malloc`` and its like, in all threads of the process."""

    number: float
    bytes: float  # that were asked for, whether or not they were freed again


def counting_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Let a process that gets these variables count: before any other library that is preloaded."""
    before = environment.get(_PRELOAD, os.environ.get(_PRELOAD, ""))
    return {**environment, _PRELOAD: f"{LIBRARY}:{before}".rstrip(":")}
