"""Experiments 8 and 11: drift against two designs, and change points with known places."""

from collections.abc import Callable

import numpy as np
from fairlap.verdict import Course, steady_state
from fairlap.verdict.exact_tests.signed_rank import p_two_sided, walsh_averages

from .figure import Figure, seeded
from .generators import Floats

_PER_ARM = 15
_SPREAD = 0.01


def drift(trials: int) -> list[Figure]:
    """Experiment 8: all of A and then all of B under Welch's test, against random blocks under ours."""
    from scipy.stats import ttest_ind  # type: ignore[import-untyped,unused-ignore]

    figures = []
    for total in (0.0, 0.01, 0.02, 0.03, 0.04, 0.05):
        rng = seeded("8", total)
        line = rng.normal(0, _SPREAD, (trials, 2 * _PER_ARM)) + np.log1p(total) * np.linspace(0, 1, 2 * _PER_ARM)
        sequential = ttest_ind(np.exp(line[:, :_PER_ARM]), np.exp(line[:, _PER_ARM:]), axis=1, equal_var=False)
        flips = rng.choice([-1.0, 1.0], (trials, _PER_ARM))
        ours = p_two_sided(walsh_averages(flips * (line[:, 0::2] - line[:, 1::2])))
        case = f"drift {100 * total:.0f} %"
        welch = int(np.count_nonzero(sequential.pvalue <= 0.05))
        figures.append(Figure("8", case, "called different, sequential with Welch", welch, trials))
        claimed = int(np.count_nonzero(ours <= 0.05))
        figures.append(Figure("8", case, "called different, ours", claimed, trials, high=0.055))
    return figures


# Parts of (samples, level), the course, and the sample from which the process is steady.
_KNOWN: dict[str, tuple[list[tuple[int, float]], Course, int]] = {
    "warm-up": ([(30, 1.3), (90, 1.0)], Course.WARM_UP, 30),
    "short warm-up": ([(8, 1.5), (92, 1.0)], Course.WARM_UP, 8),
    "warm-up in two stages": ([(30, 1.4), (30, 1.2), (60, 1.0)], Course.WARM_UP, 60),
    "slow-down": ([(40, 1.0), (80, 1.1)], Course.SLOW_DOWN, 40),
    "late change": ([(105, 1.0), (15, 1.2)], Course.NO_STEADY_STATE, 90),
}


def known_change_points(trials: int) -> list[Figure]:
    """Experiment 11: the course and, within two samples, the place from which the process is steady."""
    figures = []
    for case, (parts, course, steady_from) in _KNOWN.items():
        rng = seeded("11", case)
        agreed = 0
        for _ in range(trials):
            found = steady_state(_samples(rng, parts))
            agreed += found.course is course and abs(found.steady_from - steady_from) <= 2
        figures.append(Figure("11", case, "agrees", agreed, trials, low=0.95))
    return figures


def flat_processes(trials: int) -> list[Figure]:
    """Experiment 11: a change claimed where there is none, for the kinds of noise that samples have."""
    figures = []
    noises: dict[str, Callable[[np.random.Generator], Floats]] = {
        "flat": lambda rng: rng.normal(0, 0.02, 120),
        "flat, outliers in 5 %": lambda rng: rng.normal(0, 0.02, 120) + (rng.random(120) < 0.05) * 0.8,
        "flat, skewed": lambda rng: 0.02 * rng.exponential(1.0, 120),
        "flat, coarse clock": lambda rng: np.log(np.round(40 * np.exp(rng.normal(0, 0.02, 120)))),
    }
    for case, noise in noises.items():
        rng = seeded("11", case)
        false = sum(bool(steady_state(np.exp(noise(rng))).change_points) for _ in range(trials))
        bound = 0.01 if trials >= 1000 else needed_upper(trials)
        figures.append(Figure("11", case, "change claimed", false, trials, high=bound))
    return figures


def needed_upper(trials: int) -> float:
    """For a smaller run: what a true rate of 1 % exceeds once in a hundred suites."""
    from scipy.stats import binom  # type: ignore[import-untyped,unused-ignore]

    return float(binom.ppf(0.99, trials, 0.01)) / trials


def _samples(rng: np.random.Generator, parts: list[tuple[int, float]]) -> Floats:
    levels = np.concatenate([np.full(size, level) for size, level in parts])
    samples: Floats = 1e6 * levels * np.exp(rng.normal(0, 0.02, levels.size))
    return samples
