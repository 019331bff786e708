"""Statistical warnings: what a reader should know before trusting a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairlap import quantity_text

ONE_RANKED = "W_ONE_RANKED"
"""The code of what has no verdict because fewer than two of several contestants can be ranked."""


@dataclass(frozen=True)
class StatisticalWarning:
    """The base of every warning: `code` is for programs, `str(warning)` for people, made of `form` and the fields."""

    code: ClassVar[str]
    form: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.form.format(**vars(self))


@dataclass(frozen=True)
class TooFewBlocks(StatisticalWarning):
    code = "W_TOO_FEW_BLOCKS"
    blocks: int
    needed: int
    alpha: float
    comparisons: int = 1

    def __str__(self) -> str:
        family = f" over {self.comparisons} comparisons" if self.comparisons > 1 else ""
        level = f"the {quantity_text.share(self.alpha)} level{family}"
        return f"a verdict at {level} needs at least {self.needed} blocks (got {self.blocks})"


@dataclass(frozen=True)
class SkewedDifferences(StatisticalWarning):
    """The signed-rank interval and the sign interval are apart, so the pseudomedian is not the median."""

    code = "W_SKEWED_DIFFERENCES"
    sign_low: float
    sign_high: float

    def __str__(self) -> str:
        interval = f"[{self.sign_low:.4g}, {self.sign_high:.4g}]"
        return f"the differences are skewed: the interval of the median ratio {interval} excludes the estimate"


@dataclass(frozen=True)
class NoSpread(StatisticalWarning):
    """Noise that cannot be seen is not absent, so neither equality nor a small effect can be trusted."""

    code = "W_NO_SPREAD"
    form = "every block gave exactly the same ratio, so its noise cannot be seen"


@dataclass(frozen=True)
class ScatteredBlocks(StatisticalWarning):
    """The ratio is the middle of those of the blocks, and may be far from the ratio of two medians over processes."""

    code = "W_SCATTERED_BLOCKS"
    form = (
        "the ratios of single blocks differ {factor:.2g}-fold, so the medians of all processes may show another ratio"
    )
    factor: float


@dataclass(frozen=True)
class ModesUnderneath(StatisticalWarning):
    code = "W_MODES"
    form = "processes of {contestant} fall into {modes} modes, and the ratio is between theirs; compare the modes"
    contestant: str
    modes: int


@dataclass(frozen=True)
class ClocksDisagree(StatisticalWarning):
    """The clock of the GPU differed between two contestants, so that their time and their cycles show other things."""

    code = "W_CLOCKS_DISAGREE"
    form = (
        "by time {a} is {by_time}, by cycles {by_cycles}: the GPU ran at {a_mhz:.0f} MHz for {a} and at {b_mhz:.0f} "
        "MHz for {b}"
    )
    a: str
    a_mhz: float
    b: str
    b_mhz: float
    by_time: str
    by_cycles: str


@dataclass(frozen=True)
class CircularOrder(StatisticalWarning):
    code = "W_CIRCULAR_ORDER"
    form = "the comparisons form a circle, so no contestant is unbeaten; read them pair by pair"


@dataclass(frozen=True)
class FewSamplesBeyond(StatisticalWarning):
    code = "W_FEW_SAMPLES_BEYOND"
    quantile: float
    samples: int

    def __str__(self) -> str:
        return f"the {100 * self.quantile:g}th percentile rests on fewer than 5 of {self.samples} samples"


@dataclass(frozen=True)
class NoSteadyState(StatisticalWarning):
    code = "W_NO_STEADY_STATE"
    form = "the process reached no steady state; the figure is of its last quarter"


@dataclass(frozen=True)
class TooShortToClassify(StatisticalWarning):
    code = "W_TOO_SHORT"
    form = "a steady state cannot be recognised in fewer than {needed} samples (got {samples})"
    samples: int
    needed: int


@dataclass(frozen=True)
class ManyBlocksDropped(StatisticalWarning):
    code = "W_NOISY_BLOCKS"
    form = "{dropped} of {of} blocks were dropped as noisy; the machine is busy"
    dropped: int
    of: int


@dataclass(frozen=True)
class NotInterleaved(StatisticalWarning):
    code = "W_NOT_INTERLEAVED"
    allowance: float

    def __str__(self) -> str:
        allowance = quantity_text.share(self.allowance)
        return f"the two runs were not interleaved, so the interval is {allowance} wider on both sides"


@dataclass(frozen=True)
class EnvironmentDiffers(StatisticalWarning):
    code = "W_ENVIRONMENT_DIFFERS"
    form = "{what} differs: {before} before, {after} after"
    what: str
    before: str
    after: str
