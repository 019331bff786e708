"""One contestant of the race and what has been measured of it, until it is excluded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fairlap.scenarios.callables.untrusted.process import ContestantProcess
from fairlap.scenarios.callables.untrusted.result import Excluded, Exclusion
from fairlap.scenarios.callables.untrusted.truth import Truth

Result = TypeVar("Result")

_TOGETHER_TIMES = 2.0
_TOGETHER_NS = 100_000.0  # threads that sleep between samples wake up for the first call of each


@dataclass
class Arm:
    """``round_ns`` is the time of a call in each round of the block that runs; all others are of complete blocks."""

    name: str
    process: ContestantProcess
    exclusion: Exclusion | None = None
    round_ns: list[float] = field(default_factory=list)
    block_ns: list[float] = field(default_factory=list)
    alone_ns: list[float] = field(default_factory=list)  # of samples of one call
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
        self.process.timed(0, 1)
        self.alone_ns.append(self.process.timed(1, 1))
        self.round_ns.append(self.process.timed(before, calls) / calls)

    def check(self, slot: int, truth: Truth) -> None:
        """Compare the answer in a slot with the truth."""
        self.answers_checked += 1
        if why := truth.why_wrong(self.process.answers(slot)):
            raise Excluded(f"{why}, in answer {self.answers_checked} of those checked", code="E_OUTPUT")

    def end_block(self) -> None:
        self.block_ns.append(float(np.median(self.round_ns)))
        self.round_ns = []

    def require_one_by_one(self, floor: Arm) -> None:
        """Exclude one whose calls are much slower alone: it works on the inputs of a sample together."""
        alone_ns = float(np.quantile(self.alone_ns, 0.1) - np.quantile(floor.alone_ns, 0.1))
        together_ns = float(np.median(self.block_ns) - np.median(floor.block_ns))
        if alone_ns > _TOGETHER_TIMES * max(together_ns, 0.0) + _TOGETHER_NS:
            what = f"a call takes {alone_ns / 1e3:.0f} us alone and {together_ns / 1e3:.0f} us among others"
            raise Excluded(f"{what}: it works on several inputs at once", code="E_CALLS_TOGETHER")
