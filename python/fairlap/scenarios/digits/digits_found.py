"""What a process showed of a race of digits, beside the errors of its answers.

Whatever reads process results imports this module, so it must stay light.
"""

from __future__ import annotations

import msgspec


class DigitsFound(msgspec.Struct, frozen=True):
    """``smallest_error`` is what rounding the inputs alone brings, so that no algorithm can be blamed for it."""

    roundoff: float  # of the precision
    smallest_error: float
    other_kinds: int = 0  # elements that are NaN, infinite or finite where the reference is another of these
    elements: int = 0
