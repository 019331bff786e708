"""Comparisons by time, checked by the cycles of a clock that may have differed between the contestants.

A GPU changes its clock with temperature and power. What is faster by time only because its clock was higher is not
shown to be faster, and neither are two equivalent whose cycles differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.warnings import ClocksDisagree


def unless_cycles_disagree(
    by_time: Sequence[Comparison], by_cycles: Sequence[Comparison], mhz: Mapping[str, float]
) -> tuple[Comparison, ...]:
    """Make inconclusive what cycles do not bear out; ``mhz`` is the usual clock of each contestant.

    A difference needs both. For equivalence, it is enough that cycles show no difference.
    """
    cycles = {frozenset((each.a, each.b)): each for each in by_cycles}
    return tuple(_checked(each, cycles.get(frozenset((each.a, each.b))), mhz) for each in by_time)


def _checked(by_time: Comparison, by_cycles: Comparison | None, mhz: Mapping[str, float]) -> Comparison:
    verdict = Verdict.INCONCLUSIVE
    if by_cycles is not None:
        verdict = (by_cycles if by_cycles.a == by_time.a else by_cycles.reversed()).verdict
    agreeing = {by_time.verdict} | ({Verdict.INCONCLUSIVE} if by_time.verdict is Verdict.EQUIVALENT else set())
    if by_time.verdict is Verdict.INCONCLUSIVE or verdict in agreeing:
        return by_time
    a, b = by_time.a, by_time.b
    warning = ClocksDisagree(a, mhz[a], b, mhz[b], by_time.verdict.value, verdict.value)
    return replace(
        by_time,
        verdict=Verdict.INCONCLUSIVE,
        decided_after_blocks=None,
        warnings=(*by_time.warnings, warning),
    )
