"""Keep, discard or undecided by several benchmarks: their geometric mean decides, and none may become much slower.

Block i of a suite is block i of every benchmark, and its log speedup is their mean. Where no benchmark is slower, the
random order in each makes the sign of that mean a fair coin, given its size, so it is tested as a single benchmark is.

A benchmark that is shown to be slower by more than its bound discards the change, however fast the others are. All
these tests share the 2.5 % that discarding may cost. Nothing is kept before as many blocks have run as it takes to show
any slowdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.comparison import Interval
from fairlap.verdict.exact_tests.sequential import fewest_blocks, is_shown_above
from fairlap.verdict.exact_tests.signed_rank import centre, walsh_averages
from fairlap.verdict.gates.candidate import (
    ONE_SIDE,
    Candidate,
    Decision,
    candidate,
    decision_after,
    highest_speedup,
    lowest_speedup,
)


@dataclass(frozen=True)
class OneBenchmark:
    """``interval`` holds for all benchmarks together, in 95 % of races."""

    speedup: float
    interval: Interval
    slower: bool  # by more than its bound


@dataclass(frozen=True)
class CandidateOverSuite:
    """``mean`` is of the geometric mean, with the decision about the suite."""

    mean: Candidate
    benchmarks: Mapping[str, OneBenchmark]

    @property
    def slower(self) -> tuple[str, ...]:
        return tuple(name for name, each in self.benchmarks.items() if each.slower)


def mean_log_speedups(by_benchmark: Mapping[str, Floats]) -> Floats:
    """Compute those of the geometric mean, of each block."""
    found: Floats = np.mean(list(by_benchmark.values()), axis=0)
    return found


def fewest_blocks_over_suite(benchmarks: int, level: float, *, ended: bool) -> int:
    """Find the fewest blocks with which a change can be kept."""
    return max(fewest_blocks(level, ended=ended), fewest_blocks(ONE_SIDE / benchmarks, ended=ended))


def decision_over_suite(
    by_benchmark: Mapping[str, Floats], bounds: Mapping[str, float], gain: float, level: float, *, ended: bool
) -> Decision:
    """Decide after these blocks; ``bounds`` has the largest acceptable slowdown of each benchmark."""
    if any(_is_slower(by_benchmark, name, bounds[name], ended=ended) for name in by_benchmark):
        return "discard"
    mean = mean_log_speedups(by_benchmark)
    found = decision_after(mean, gain, level, ended=ended)
    if found == "keep" and mean.size < fewest_blocks_over_suite(len(by_benchmark), level, ended=ended):
        return "undecided"
    return found


def candidate_over_suite(
    by_benchmark: Mapping[str, Floats], bounds: Mapping[str, float], *, gain: float, level: float, ended: bool
) -> CandidateOverSuite:
    """Judge a change by the logarithm of its speedup in each block of each benchmark."""
    mean = candidate(mean_log_speedups(by_benchmark), gain=gain, level=level, ended=ended)
    decision = decision_over_suite(by_benchmark, bounds, gain, level, ended=ended)
    own_level = ONE_SIDE / len(by_benchmark)
    benchmarks = {
        name: OneBenchmark(
            float(np.exp(centre(walsh_averages(logs)))),
            Interval(
                lowest_speedup(logs, own_level, ended=ended),
                highest_speedup(logs, own_level, ended=ended),
                2 * own_level,
            ),
            _is_slower(by_benchmark, name, bounds[name], ended=ended),
        )
        for name, logs in by_benchmark.items()
    }
    return CandidateOverSuite(replace(mean, decision=decision), benchmarks)


def _is_slower(by_benchmark: Mapping[str, Floats], name: str, bound: float, *, ended: bool) -> bool:
    return is_shown_above(-by_benchmark[name], float(np.log1p(bound)), ONE_SIDE / len(by_benchmark), ended=ended)
