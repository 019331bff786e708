"""How speed-up falls behind: Gunther's universal scalability law, fitted to the times of several scales.

At n the speed is n / (1 + sigma (n - 1) + kappa n (n - 1)) times that at 1. Sigma is the share that does not run in
parallel, as in Amdahl's law; kappa is what every pair costs, which makes more of them slower in the end. The time of
an item, times n, is linear in both, so the law is fitted to times and no scale is taken to be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import BadInput, Floats
from fairlap.verdict.scaling.bounded_fit import Bounded, bounded, nonnegative_fit, resampled

FEWEST_SCALES = 3
FEWEST_BLOCKS = 6


class TooFewScales(BadInput):
    """There are not enough scales or blocks to fit a law."""


@dataclass(frozen=True, eq=False)
class UniversalScalability:
    """A projection rests on it; nothing is ranked by it."""

    sigma: Bounded
    kappa: Bounded
    blocks: int
    smallest: float  # scale, which speed-ups refer to
    _draws: Floats  # of sigma and kappa, shaped (resamples, 2)

    def speed_up(self, size: float) -> Bounded:
        """Over the smallest scale that was measured."""
        return bounded(self._speed(size) / self._speed(self.smallest), self.blocks)

    def _speed(self, size: float) -> Floats:
        sigma, kappa = self._draws.T
        speed: Floats = size / (1 + sigma * (size - 1) + kappa * size * (size - 1))
        return speed


def universal_scalability(log_times: Floats, sizes: Sequence[float]) -> UniversalScalability:
    """``log_times`` are of one item, shaped (blocks, scales); ``sizes`` has what each scale is n times of."""
    blocks, scales = log_times.shape
    if len(set(sizes)) < FEWEST_SCALES:
        raise TooFewScales(f"a projection needs {FEWEST_SCALES} scales (got {len(set(sizes))})")
    if blocks < FEWEST_BLOCKS:
        raise TooFewScales(f"a projection needs {FEWEST_BLOCKS} blocks at every scale (got {blocks})")
    n = np.asarray(sizes, dtype=np.float64)
    times = np.exp(log_times[resampled(blocks)].mean(axis=1))  # (resamples, scales), geometric means over blocks
    work = n * times
    law = np.column_stack([np.ones(scales), n - 1, n * (n - 1)])
    found = nonnegative_fit(law[None] / work[:, :, None], np.ones_like(work))  # relative errors, as noise is relative
    draws = found[:, 1:] / found[:, :1]
    sigma, kappa = (bounded(column, blocks) for column in draws.T)
    return UniversalScalability(sigma, kappa, blocks, float(n.min()), draws)
