"""From pairs of scores to verdicts, with one error rate over all pairs.

Holm's correction (1979) makes the chance that any claimed difference is false at most alpha, whatever the dependence
between the pairs. As for times, a difference is shown where the interval excludes 0, and an equivalence where its
interval is inside the margin; a difference that is shown takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from fairlap.verdict.blocks import require_between
from fairlap.verdict.comparison import Interval, Verdict
from fairlap.verdict.exact_tests.multiplicity import holm


class PairOfScores(Protocol):
    """A paired test. ``interval`` excludes 0 exactly where ``p`` is at most the level."""

    @property
    def method(self) -> str: ...

    @property
    def difference(self) -> float: ...

    @property
    def p(self) -> float: ...

    def interval(self, level: float) -> tuple[float, float]: ...

    def equivalence_interval(self, level: float) -> tuple[float, float]: ...

    def p_equivalent(self, margin: float) -> float: ...

    def detectable(self, level: float) -> float: ...


@dataclass(frozen=True)
class ScoreComparison:
    """Contestant a against contestant b; ``difference`` is a's score minus b's. Faster reads better, slower worse."""

    a: str
    b: str
    difference: float
    interval: Interval
    p: float
    p_adjusted: float
    margin: float
    equivalence_interval: Interval
    p_equivalent_adjusted: float
    detectable_effect: float
    verdict: Verdict
    method: str

    def mirrored(self, a: str, b: str) -> ScoreComparison:
        """Read the same comparison from the other side."""
        return replace(
            self,
            a=a,
            b=b,
            difference=-self.difference,
            interval=_negated(self.interval),
            equivalence_interval=_negated(self.equivalence_interval),
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
        )


_OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low, interval.level)


def judge_scores(
    pairs: Mapping[tuple[str, str], PairOfScores],
    margins: Mapping[tuple[str, str], float],
    *,
    better: Literal["higher", "lower"] = "higher",
    alpha: float = 0.05,
) -> tuple[ScoreComparison, ...]:
    """Judge all pairs as one family; ``margins`` are differences within which two scores are equivalent."""
    require_between("alpha", alpha, 0.0, 1.0)
    if not pairs:
        return ()
    p_different = np.array([pair.p for pair in pairs.values()])
    p_same = np.array([pair.p_equivalent(margins[names]) for names, pair in pairs.items()])
    different, same = holm(p_different, alpha), holm(p_same, alpha)
    found = []
    for place, (names, pair) in enumerate(pairs.items()):
        level, same_level = float(different.levels[place]), float(same.levels[place])
        outcome = Verdict.INCONCLUSIVE
        if different.shown[place]:
            outcome = Verdict.FASTER if (pair.difference > 0) == (better == "higher") else Verdict.SLOWER
        elif same.shown[place]:
            outcome = Verdict.EQUIVALENT
        found.append(
            ScoreComparison(
                *names,
                pair.difference,
                Interval(*pair.interval(level), level),
                float(p_different[place]),
                float(different.adjusted[place]),
                margins[names],
                Interval(*pair.equivalence_interval(2 * same_level), 2 * same_level),
                float(same.adjusted[place]),
                pair.detectable(level),
                outcome,
                pair.method,
            )
        )
    return tuple(found)
