"""What calls allocate, and the library that counts it, which is preloaded into processes that are to count."""

from __future__ import annotations

from pathlib import Path

import msgspec

LIBRARY = Path(__file__).resolve().parent.parent / "engine" / "libfairlap_allocations.so"


class Allocations(msgspec.Struct, frozen=True):
    """Of one call, the median of several: by ``malloc`` and its like, in all threads of the process."""

    number: float
    bytes: float  # that were asked for, whether or not they were freed again
