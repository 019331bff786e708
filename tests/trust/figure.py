"""One measured figure of the trust suite with the threshold it has to meet."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Figure:
    """`low` and `high` bound what passes; None on a side means that nothing is asked there."""

    experiment: str
    case: str
    what: str
    count: int
    trials: int
    low: float | None = None
    high: float | None = None

    @property
    def rate(self) -> float:
        return self.count / self.trials

    @property
    def passed(self) -> bool:
        return (self.low is None or self.rate >= self.low) and (self.high is None or self.rate <= self.high)

    def as_row(self) -> dict[str, object]:
        return asdict(self) | {"rate": self.rate, "passed": self.passed}

    def __str__(self) -> str:
        found = f"{self.count} of {self.trials} = {self.rate:.4f}"
        return f"{self.experiment} | {self.case} | {self.what}: {found}, asked {self.low} to {self.high}"


Experiment = Callable[[int], list[Figure]]


def allowed_share(trials: int, nominal: float = 0.05) -> float:
    """Compute the share that a rule keeping its level exceeds once in 100 suites: 551 of 10,000, 31 of 400."""
    from scipy.stats import binom  # type: ignore[import-untyped,unused-ignore]

    return float(binom.ppf(0.99, trials, nominal)) / trials


def needed_share(trials: int, nominal: float) -> float:
    """Compute the share that a rule whose true rate is the nominal one falls short of once in a hundred suites.

    Used only where a smaller run than the stated one checks the same rate; the full run uses the rate itself.
    """
    from scipy.stats import binom  # type: ignore[import-untyped,unused-ignore]

    return nominal if trials >= 10_000 else float(binom.ppf(0.01, trials, nominal)) / trials


def seeded(*words: object) -> np.random.Generator:
    """Seed a generator that depends on the experiment and on nothing else."""
    return np.random.default_rng(list("|".join(map(str, words)).encode()))
