"""What an exchange costs by the number of ranks and the bytes: the latency-bandwidth model of a ring all-reduce.

A ring of n ranks takes 2 (n - 1) steps, each of which sends an n-th of the bytes: alpha for each step, and 1 / beta
for each byte that a rank sends (Patarasuk and Yuan, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.scaling.bounded_fit import Bounded, bounded, nonnegative_fit, resampled
from fairlap.verdict.scaling.universal_scalability import FEWEST_BLOCKS, TooFewScales

_NS_PER_S = 1e9
FEWEST_EXCHANGES = 2


@dataclass(frozen=True, eq=False)
class LatencyBandwidth:
    alpha_ns: Bounded  # of each step of the ring
    beta_bytes_per_s: Bounded  # infinite where the bytes cost nothing that can be seen
    blocks: int
    _draws: Floats  # of alpha and of nanoseconds per byte, shaped (resamples, 2)

    def exchange_ns(self, ranks: int, size_bytes: float) -> Bounded:
        return bounded(self._draws @ _terms([ranks], [size_bytes])[0], self.blocks)


def latency_bandwidth(exchanges_ns: Floats, ranks: Sequence[int], sizes_bytes: Sequence[float]) -> LatencyBandwidth:
    """``exchanges_ns`` is shaped (blocks, exchanges), each with its ranks and bytes."""
    blocks = exchanges_ns.shape[0]
    terms = _terms(ranks, sizes_bytes)
    if np.linalg.matrix_rank(terms) < FEWEST_EXCHANGES:
        raise TooFewScales(
            "the cost of an exchange needs two numbers of ranks above 1, or two sizes, to tell latency from bandwidth"
        )
    if blocks < FEWEST_BLOCKS:
        raise TooFewScales(f"the cost of an exchange needs {FEWEST_BLOCKS} blocks (got {blocks})")
    times = exchanges_ns[resampled(blocks)].mean(axis=1)
    usual = np.abs(times[0])
    if not (times[0] > 0).all():
        raise TooFewScales("an exchange is not above the noise, so its cost is unknown")
    draws = nonnegative_fit(np.broadcast_to(terms / usual[:, None], (len(times), *terms.shape)), times / usual)
    with np.errstate(divide="ignore"):
        per_s = _NS_PER_S / draws[:, 1]
    return LatencyBandwidth(bounded(draws[:, 0], blocks), _of_rates(per_s, blocks), blocks, draws)


def _of_rates(per_s: Floats, blocks: int) -> Bounded:
    """Through the inverse, since some may be infinite."""
    found = bounded(1 / per_s, blocks)
    low, value, high = (float("inf") if each == 0 else 1 / each for each in (found.high, found.value, found.low))
    return Bounded(value, low, high)


def _terms(ranks: Sequence[int], sizes_bytes: Sequence[float]) -> Floats:
    n, size = np.asarray(ranks, dtype=np.float64), np.asarray(sizes_bytes, dtype=np.float64)
    return np.column_stack([2 * (n - 1), 2 * (n - 1) / n * size])
