"""What is known about one pair of contestants on one work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from fairlap.verdict.blocks import Evidence
from fairlap.verdict.metric import Metric
from fairlap.verdict.warnings import StatisticalWarning


class Verdict(Enum):
    """The four outcomes of a comparison; for a metric other than speed read better and worse."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


_OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


@dataclass(frozen=True)
class Interval:
    """A closed range, drawn at a level: it misses the truth in at most that share of runs.

    Of ratios, or of differences where scores are compared.
    """

    low: float
    high: float
    level: float

    def inverse(self) -> Interval:
        """Invert the range, for the ratio taken the other way round."""
        return Interval(1 / self.high, 1 / self.low if self.low > 0 else float("inf"), self.level)


@dataclass(frozen=True)
class Comparison:
    """Contestant a against contestant b.

    `ratio` is a's figure divided by b's. `interval` decides faster and slower,
    `equivalence_interval` decides equivalent, `sign_interval` is a cross-check that assumes less.

    `level` is what the look spent that these figures are of; adjusted p values are compared with it.
    `decided_after_blocks` is the look that decided, or None for an inconclusive comparison.
    """

    workload: str
    metric: Metric
    a: str
    b: str
    blocks: int
    ratio: float
    interval: Interval
    p: float
    p_adjusted: float
    margin: float
    equivalence_interval: Interval
    p_equivalent: float
    p_equivalent_adjusted: float
    sign_interval: Interval
    detectable_effect: float
    verdict: Verdict
    within_margin: bool
    level: float
    decided_after_blocks: int | None
    evidence: Evidence = "between processes"
    warnings: tuple[StatisticalWarning, ...] = ()

    def reversed(self) -> Comparison:
        """Turn the comparison around, with b as its subject."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            ratio=1 / self.ratio,
            interval=self.interval.inverse(),
            equivalence_interval=self.equivalence_interval.inverse(),
            sign_interval=self.sign_interval.inverse(),
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
        )
