"""What queueing theory says about one server with Poisson arrivals, and the recursion that it describes.

Latency is the time from arrival to completion, with waiting. Times are in units of the mean service, ``load`` is the
share of time in which the server is busy.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["constant", "exponential"]
_DIGITS = 80  # the terms of the alternating sum below grow far beyond its value


def mean_latency(kind: Kind, load: float) -> float:
    """Pollaczek and Khinchine: 1 + load * E[S^2] / (2 * (1 - load))."""
    second_moment = {"constant": 1.0, "exponential": 2.0}[kind]
    return 1 + load * second_moment / (2 * (1 - load))


def latency_quantile(kind: Kind, load: float, share: float) -> float:
    """M/M/1: exponential with rate 1 - load. M/D/1: Erlang's distribution of the wait, plus one service."""
    if kind == "exponential":
        return -math.log(1 - share) / (1 - load)
    low, high = 0.0, 1.0
    while share_waiting_at_most(high, load) < share:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if share_waiting_at_most(middle, load) >= share else (middle, high)
    return 1 + high


def share_waiting_at_most(wait: float, load: float) -> float:
    """In M/D/1 (Erlang 1909): (1 - r) * sum over k <= wait of (r (k - wait))^k / k! * exp(-r (k - wait))."""
    with localcontext() as context:
        context.prec = _DIGITS
        rate, until = Decimal(load), Decimal(wait)
        total = Decimal(0)
        for k in range(math.floor(wait) + 1):
            at = rate * (k - until)
            total += (at**k if k else Decimal(1)) / math.factorial(k) * (-at).exp()
        return float((1 - rate) * total)


def waits(due: NDArray[np.float64], service: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lindley's recursion: each request starts when it is due or the one before it is complete."""
    work = np.cumsum(service)
    before = work - service
    return before + np.maximum.accumulate(due - before) - due


def variance_of_mean(values: NDArray[np.float64], batches: int = 20) -> float:
    """Of correlated values in their order, by batch means."""
    means = np.array([batch.mean() for batch in np.array_split(values, batches)])
    return float(means.var(ddof=1) / batches)


def variance_per_request(kind: Kind, load: float) -> float:
    """How many times the variance of the mean latency of n requests is larger than 1 / n.

    M/M/1: Daley (1968), the wait, with the service's own variance and their covariance, which is small, left out.
    M/D/1 by a simulation of four million requests: no formula as simple is known to us.
    """
    if kind == "exponential":
        polynomial = 2 + 5 * load - 4 * load**2 + load**3
        return load * polynomial / (1 - load) ** 4 + 1
    random = np.random.default_rng(1909)
    count = 4_000_000
    due = np.cumsum(random.exponential(1 / load, count))
    return variance_of_mean(waits(due, np.ones(count)), batches=200) * count
