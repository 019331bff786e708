"""How many calls a sample of each callable has, so that what it costs besides them is the same for equal callables.

Equal functions of 9 ns differed by 0.5 % where the warm-up of one chose half as many calls as that of the other, since
what reading the clock costs is part of each figure.
"""

from __future__ import annotations

from collections.abc import Sequence

_ALIKE = 2.0  # times as long


def even_calls(calls: Sequence[int], medians_ns: Sequence[float]) -> list[int]:
    """Give callables that take about as long the same number, the largest of theirs."""
    return [
        max(own, *(other for other, other_ns in zip(calls, medians_ns, strict=True) if _alike(median_ns, other_ns)), 1)
        for own, median_ns in zip(calls, medians_ns, strict=True)
    ]


def _alike(first_ns: float, second_ns: float) -> bool:
    return first_ns <= _ALIKE * second_ns and second_ns <= _ALIKE * first_ns
