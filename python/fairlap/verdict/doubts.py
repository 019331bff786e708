"""Doubts are values: what a reader should know before trusting a figure, kept beside it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Doubt:
    """The base of every doubt; `str(doubt)` is the sentence to print."""


@dataclass(frozen=True)
class TooFewBlocks(Doubt):
    blocks: int
    needed: int
    alpha: float
    comparisons: int = 1

    def __str__(self) -> str:
        family = f" over {self.comparisons} comparisons" if self.comparisons > 1 else ""
        level = f"the {100 * self.alpha:g} % level{family}"
        return f"a verdict at {level} needs at least {self.needed} blocks (got {self.blocks})"


@dataclass(frozen=True)
class SkewedDifferences(Doubt):
    """The signed-rank interval and the sign interval lie apart, so the pseudomedian is not the median."""

    sign_low: float
    sign_high: float

    def __str__(self) -> str:
        return (
            f"the median ratio [{self.sign_low:.4g}, {self.sign_high:.4g}] does not hold the estimate; "
            "the differences are skewed"
        )


@dataclass(frozen=True)
class NoSpread(Doubt):
    """Noise that cannot be seen is not absent, so neither equality nor a small effect can be trusted."""

    def __str__(self) -> str:
        return "every block gave exactly the same ratio; the clock is too coarse to show the noise"


@dataclass(frozen=True)
class ModesUnderneath(Doubt):
    contestant: str
    modes: int

    def __str__(self) -> str:
        return (
            f"processes of {self.contestant} fall into {self.modes} modes, so the ratio lies between theirs; "
            "read the modes"
        )


@dataclass(frozen=True)
class CircularOrder(Doubt):
    def __str__(self) -> str:
        return "the comparisons go round in a circle, so nobody is unbeaten; read them pair by pair"


@dataclass(frozen=True)
class FewSamplesBeyond(Doubt):
    quantile: float
    samples: int

    def __str__(self) -> str:
        return f"the {100 * self.quantile:g}th percentile rests on fewer than 5 of {self.samples} samples"


@dataclass(frozen=True)
class NoSteadyState(Doubt):
    def __str__(self) -> str:
        return "the process never settled; the figure is over its last quarter and describes nothing steady"


@dataclass(frozen=True)
class TooShortToClassify(Doubt):
    samples: int
    needed: int

    def __str__(self) -> str:
        return f"{self.samples} samples cannot show a steady state; {self.needed} can"


@dataclass(frozen=True)
class DependentSamples(Doubt):
    samples: int
    worth: int

    def __str__(self) -> str:
        return (
            f"samples in this process depend on each other; {self.samples} of them are worth about "
            f"{self.worth} independent ones"
        )


@dataclass(frozen=True)
class ManyBlocksDropped(Doubt):
    dropped: int
    of: int

    def __str__(self) -> str:
        return f"{self.dropped} of {self.of} blocks were dropped as noisy; this machine is too busy to trust"


@dataclass(frozen=True)
class NotInterleaved(Doubt):
    allowance: float

    def __str__(self) -> str:
        return (
            f"the two runs were not interleaved, so the interval is widened by {100 * self.allowance:.2g} % "
            "on both sides"
        )


@dataclass(frozen=True)
class EnvironmentDiffers(Doubt):
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} differs: {self.before} before, {self.after} after"
