"""What common rules say about identical contestants: the figures behind "what was rejected" in the docs.

Nothing is asked of these rules; they are measured beside ours on the same simulated machine, with processes
that differ by 1.4 % and samples inside a process that differ by 2 %.
"""

import numpy as np
from fairlap.verdict.exact_tests.signed_rank import p_two_sided, walsh_averages

from .figure import Figure, seeded
from .generators import PROCESS_SPREAD, Floats, run_blocks

_INSIDE = 0.02


def rejected_rules(trials: int) -> list[Figure]:
    """Count false differences by each rule at its nominal 5 %."""
    counts = {
        "looking at p after every block from 6 to 40": _peeking(trials),
        "Mann-Whitney on 30 samples of one process each": _one_process_each(trials),
        "t test on 5 processes x 3 samples, pooled": _pooled(trials),
        "five arms, every pair at 5 % without correction": _uncorrected(trials),
    }
    return [Figure("rejected", "independent", rule, count, trials) for rule, count in counts.items()]


def _peeking(trials: int) -> int:
    log_figures = run_blocks("independent", seeded("peeking"), trials, 40, [0.0, 0.0])
    d = log_figures[..., 0] - log_figures[..., 1]
    ever = np.zeros(trials, dtype=bool)
    for blocks in range(6, 41):
        ever |= p_two_sided(walsh_averages(d[:, :blocks])) <= 0.05
    return int(np.count_nonzero(ever))


def _samples(rng: np.random.Generator, trials: int, processes: int, each: int) -> Floats:
    between = rng.normal(0, PROCESS_SPREAD, (trials, processes, 1))
    samples: Floats = (between + rng.normal(0, _INSIDE, (trials, processes, each))).reshape(trials, -1)
    return samples


def _one_process_each(trials: int) -> int:
    from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]

    rng = seeded("one process")
    a, b = _samples(rng, trials, 1, 30), _samples(rng, trials, 1, 30)
    return int(np.count_nonzero(mannwhitneyu(a, b, axis=1).pvalue <= 0.05))


def _pooled(trials: int) -> int:
    from scipy.stats import ttest_ind  # type: ignore[import-untyped,unused-ignore]

    rng = seeded("pooled")
    a, b = _samples(rng, trials, 5, 3), _samples(rng, trials, 5, 3)
    return int(np.count_nonzero(ttest_ind(a, b, axis=1).pvalue <= 0.05))


def _uncorrected(trials: int) -> int:
    log_figures = run_blocks("independent", seeded("uncorrected"), trials, 12, [0.0] * 5)
    first, second = np.triu_indices(5, k=1)
    pairs = np.moveaxis(log_figures[..., first] - log_figures[..., second], -2, -1)
    return int(np.count_nonzero((p_two_sided(walsh_averages(pairs)) <= 0.05).any(axis=1)))
