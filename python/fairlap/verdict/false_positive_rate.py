"""The self-test's arithmetic: how many of n comparisons of identical contestants claimed a difference."""

from dataclasses import dataclass

from fairlap.verdict.blocks import BadOption, require_between


@dataclass(frozen=True)
class FalsePositives:
    """Claims out of trials, the exact (Clopper-Pearson) interval of the rate, and the most allowed."""

    claims: int
    trials: int
    low: float
    high: float
    allowed: int

    @property
    def passed(self) -> bool:
        return self.claims <= self.allowed


def false_positives(claims: int, trials: int, *, alpha: float = 0.05, confidence: float = 0.95) -> FalsePositives:
    """Judge a self-test; a rule that keeps its level exceeds `allowed` in at most 1 % of self-tests."""
    from scipy.stats import binom, binomtest  # type: ignore[import-untyped,unused-ignore]

    require_between("alpha", alpha, 0.0, 1.0)
    require_between("confidence", confidence, 0.0, 1.0)
    if not 0 <= claims <= trials or trials == 0:
        raise BadOption(f"{claims} claims of {trials} trials cannot be")
    bounds = binomtest(claims, trials).proportion_ci(confidence, method="exact")
    allowed = int(binom.ppf(0.99, trials, alpha))
    return FalsePositives(claims, trials, float(bounds.low), float(bounds.high), allowed)
