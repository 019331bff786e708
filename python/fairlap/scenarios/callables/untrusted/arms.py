"""One contestant of the race and what has been measured of it, until it is excluded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fairlap.scenarios.callables.untrusted.exclusion import Excluded, Exclusion
from fairlap.scenarios.callables.untrusted.process import ContestantProcess
from fairlap.scenarios.callables.untrusted.truth import Truth

Result = TypeVar("Result")

FEWEST_ALONE = 30  # calls alone, before one is excluded for them
_TOGETHER_TIMES = 2.0
_TOGETHER_NS = 100_000.0  # threads that sleep between samples wake up for the first call of each
_TOGETHER_ALPHA = 1e-4


@dataclass
class Arm:
    """``round_ns`` is the time of a call in each round of the block that runs; all others are of complete blocks."""

    name: str
    process: ContestantProcess
    exclusion: Exclusion | None = None
    round_ns: list[float] = field(default_factory=list)
    block_ns: list[float] = field(default_factory=list)
    alone_ns: list[float] = field(default_factory=list)  # of samples of one call
    together_ns: list[float] = field(default_factory=list)  # of a call in each other sample
    answers_checked: int = 0

    def attempt(self, step: Callable[[], Result]) -> Result | None:
        """Return what the step returned, or None where that excluded it, or something before."""
        if self.exclusion is None:
            try:
                return step()
            except Excluded as why:
                self.exclusion = Exclusion(why.code, str(why))
                self.process.end()
        return None

    def run_round(self, before: int, calls: int) -> None:
        """Call it once cold, once alone, and then for the sample; ``before`` is the first slot of that."""
        self.run_alone()
        self.round_ns.append(self.process.timed(before, calls) / calls)
        self.together_ns.append(self.round_ns[-1])

    def run_alone(self) -> None:
        self.process.timed(0, 1)
        self.alone_ns.append(self.process.timed(1, 1))

    def check(self, slot: int, truth: Truth) -> None:
        """Compare the answer in a slot with the truth."""
        self.answers_checked += 1
        if why := truth.why_wrong(self.process.answers(slot)):
            raise Excluded(f"{why}, in answer {self.answers_checked} of those checked", code="E_OUTPUT")

    def end_block(self) -> None:
        self.block_ns.append(float(np.median(self.round_ns)))
        self.round_ns = []

    def is_slow_alone(self, floor: Arm) -> bool:
        """Whether its quick calls alone take much longer than those among others."""
        return _quick_ns(self.alone_ns) - _quick_ns(floor.alone_ns) > self._longest_alone_ns(floor)

    def require_one_by_one(self, floor: Arm) -> None:
        """Exclude one that is slow alone: it works on the inputs of a sample together.

        In each round its call is compared with the empty one. Whatever else the machine does disturbs both alike, so
        that an honest call takes longer by so much in every second round at most.
        """
        if not self.is_slow_alone(floor):
            return
        from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

        differences_ns = np.subtract(self.alone_ns, floor.alone_ns)
        slow = int((differences_ns > self._longest_alone_ns(floor)).sum())
        if binomtest(slow, differences_ns.size, alternative="greater").pvalue <= _TOGETHER_ALPHA:
            alone_us = float(np.median(differences_ns)) / 1e3
            what = f"a call takes {alone_us:.0f} us alone and {self._together_ns(floor) / 1e3:.0f} us among others"
            raise Excluded(f"{what}: it works on several inputs at once", code="E_CALLS_TOGETHER")

    def _together_ns(self, floor: Arm) -> float:
        return max(0.0, _quick_ns(self.together_ns) - _quick_ns(floor.together_ns))

    def _longest_alone_ns(self, floor: Arm) -> float:
        return _TOGETHER_TIMES * self._together_ns(floor) + _TOGETHER_NS


def _quick_ns(times_ns: Sequence[float]) -> float:
    """On a busy machine the others are disturbed."""
    return float(np.quantile(times_ns, 0.1))
