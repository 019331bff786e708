"""How others decide, each on the number of processes and samples that its tool takes by default.

A rule is handed the samples of both arms, shaped (processes, samples), and says which arm it calls faster. Where the
tool's own code decides, it is called; elsewhere its rule is written here from its documentation, and marked so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from fairlap.verdict import Verdict, block_table, judge, process_figure, steady_state

from ..generators import Floats

Called = Literal["a", "b", "neither"]
Source = Literal["its own code", "from its documentation"]


@dataclass(frozen=True)
class Rule:
    tool: str
    rule: str
    processes: int  # of each arm
    interleaved: bool
    source: Source
    decide: Callable[[Floats, Floats], Called]


def _smaller(a: float, b: float) -> Called:
    return "a" if a < b else "b" if b < a else "neither"


def fairlap(a: Floats, b: Floats) -> Called:
    figures = {
        name: [process_figure(samples, steady_state(samples)).value for samples in arm]
        for name, arm in (("a", a), ("b", b))
    }
    [found] = judge([block_table(figures)])
    return {Verdict.FASTER: "a", Verdict.SLOWER: "b"}.get(found.verdict, "neither")  # type: ignore[return-value]


def pyperf(a: Floats, b: Floats) -> Called:
    """Three values from each process, pooled into one t test."""
    from pyperf._utils import is_significant

    values = [[float(part.mean()) for row in arm for part in np.split(row, 3)] for arm in (a, b)]
    significant, _ = is_significant(*values)
    return _smaller(float(np.mean(values[0])), float(np.mean(values[1]))) if significant else "neither"


def hyperfine(a: Floats, b: Floats) -> Called:
    """One whole run of the command is one value; the one with the smaller mean "ran ... times faster"."""
    return _smaller(float(a.sum(axis=1).mean()), float(b.sum(axis=1).mean()))


def welch(a: Floats, b: Floats) -> Called:
    """Welch's t test at 5 % on whole runs, as a script in hyperfine's repository does."""
    from scipy.stats import ttest_ind  # type: ignore[import-untyped,unused-ignore]

    runs_a, runs_b = a.sum(axis=1), b.sum(axis=1)
    if ttest_ind(runs_a, runs_b, equal_var=False).pvalue >= 0.05:
        return "neither"
    return _smaller(float(runs_a.mean()), float(runs_b.mean()))


def pytest_benchmark(a: Floats, b: Floats) -> Called:
    """``--benchmark-compare-fail=min:5%``, its documentation's first example: the smallest of one process."""
    smallest_a, smallest_b = float(a.min()), float(b.min())
    return "a" if smallest_b > 1.05 * smallest_a else "b" if smallest_a > 1.05 * smallest_b else "neither"


def torch_compare(a: Floats, b: Floats) -> Called:
    """Medians of one process; only what is within 1 % of the best is coloured as best."""
    from torch.utils.benchmark.utils.compare import BEST, _Row

    medians = [float(np.median(arm)) / 1e9 for arm in (a, b)]
    best = [_Row.color_segment("x", median, min(medians)).startswith(BEST) for median in medians]
    return "neither" if all(best) else "a" if best[0] else "b"


def google_benchmark(a: Floats, b: Floats) -> Called:
    """``compare.py`` on ten repetitions of one process each: a U test at 5 %."""
    from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]

    repetitions = [np.array([part.mean() for part in np.array_split(arm[0], 10)]) for arm in (a, b)]
    if mannwhitneyu(*repetitions).pvalue >= 0.05:
        return "neither"
    return _smaller(float(np.median(repetitions[0])), float(np.median(repetitions[1])))


def criterion(a: Floats, b: Floats) -> Called:
    """One process each: bootstrapped t statistic at 5 %, and a change of the mean beyond the noise threshold of 1 %."""
    rng = np.random.default_rng(len(a[0]))
    first, second = a[0], b[0]
    pooled = np.concatenate([first, second])
    drawn = rng.choice(pooled, (2000, pooled.size))
    under_equal = _t(drawn[:, : first.size], drawn[:, first.size :])
    p = float(np.mean(np.abs(under_equal) >= abs(_t(first[None], second[None])[0])))
    means = [rng.choice(arm, (2000, arm.size)).mean(axis=1) for arm in (first, second)]
    low, high = np.quantile(means[1] / means[0] - 1, [0.025, 0.975])
    if p >= 0.05:
        return "neither"
    return "a" if low > 0.01 else "b" if high < -0.01 else "neither"


def _t(a: Floats, b: Floats) -> Floats:
    spread = np.sqrt(a.var(axis=1, ddof=1) / a.shape[1] + b.var(axis=1, ddof=1) / b.shape[1])
    statistic: Floats = (a.mean(axis=1) - b.mean(axis=1)) / np.maximum(spread, 1e-12)
    return statistic


def asv(a: Floats, b: Floats) -> Called:
    """Two processes of each, pooled: a U test at 0.2 %, and a change of the median of more than 10 %."""
    from scipy.stats import mannwhitneyu

    medians = float(np.median(a)), float(np.median(b))
    if mannwhitneyu(a.ravel(), b.ravel()).pvalue >= 0.002 or max(medians) / min(medians) <= 1.1:
        return "neither"
    return _smaller(*medians)


RULES = (
    Rule("fairlap", "exact signed rank over blocks", 12, True, "its own code", fairlap),
    Rule("pyperf compare_to", "t test on pooled values", 20, False, "its own code", pyperf),
    Rule("hyperfine", "smaller mean wins", 10, False, "from its documentation", hyperfine),
    Rule("pytest-benchmark", "min 5 % larger", 1, False, "from its documentation", pytest_benchmark),
    Rule("torch Compare", "median 1 % above the best", 1, False, "its own code", torch_compare),
    Rule("Google Benchmark", "U test in one process", 1, False, "from its documentation", google_benchmark),
    Rule("criterion", "bootstrap in one process", 1, False, "from its documentation", criterion),
    Rule("asv", "U test and 10 %", 2, True, "from its documentation", asv),
)
