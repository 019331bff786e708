"""What tests of scores share: the power at which effects count as detectable, and levels that are found by halving."""

from __future__ import annotations

from collections.abc import Callable

Z_OF_POWER = 0.8416212335729143
"""Of 80 %: the normal quantile."""
_HALVINGS = 40


def smallest_level(is_shown: Callable[[float], bool]) -> float:
    """Find the smallest one-sided level at which a claim is shown that is shown at every greater one; 1 if at none."""
    low, high = 0.0, 0.5
    if not is_shown(high - 1e-9):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high
