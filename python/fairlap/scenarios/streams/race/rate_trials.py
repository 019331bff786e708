"""The search for the largest rate at which first and further tokens of 99 of 100 requests come within their bounds.

Which rate is tried next is decided as in a load on models.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap import verdict
from fairlap.engine.load import constant_arrivals_ns
from fairlap.request.fields.load import Load
from fairlap.request.fields.streams import Bounds
from fairlap.scenarios.load.load_messages import LoadFound, LoadTrial
from fairlap.scenarios.load.race.rate_search import Offered, rate_search
from fairlap.scenarios.streams.figures import Tokens
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.workload.arrivals import Arrivals

PERCENTILE = 0.99
_MOST_SEED = 2**31
_CAPACITY_S = 0.5  # of what a search of rates first asks for at once, for each worker

Offer = Callable[[npt.NDArray[np.float64], int], Served]
"""Offers a load that is due at these times, of requests that are drawn from a seed."""


@dataclass(frozen=True)
class SearchedRate:
    found: LoadFound
    at_largest_rate: Served | None = None


def search_rate(
    offer: Offer,
    bounds: Bounds,
    *,
    arrivals: Arrivals,
    alone_s: float,
    connections: int,
    trial_s: float,
    seed: int,
    ends: Callable[[], bool],
) -> SearchedRate:
    """Search until ``ends`` says, before a trial, that the time for it is spent: then no rate is confirmed."""
    draw = random.Random(seed)
    # So many that all connections are in use, twice: a server may answer many at once.
    workers = math.ceil(2 * connections * alone_s / _CAPACITY_S)
    load = Load(PERCENTILE, None, workers=workers, trial_s=trial_s, first_token_s=bounds.first_token_s or math.inf)
    search = rate_search(load, alone_s, curve=False)
    trials: list[LoadTrial] = []
    confirmed: Served | None = None
    offered = next(search)
    while True:
        if ends():
            return SearchedRate(LoadFound(tuple(trials), limited_by="budget"))
        if offered.items == "pool":
            trial_seed = draw.randrange(_MOST_SEED)
            served = offer(_due_ns(offered, arrivals, trial_seed), trial_seed)
            trial = trial_of(offered, served, bounds)
            trials.append(trial)
            if offered.kind == "at_largest_rate":
                confirmed = served
        else:  # whether answers are kept is found out before the load, since that takes long here
            trial = LoadTrial(offered.kind, None, 0, 0, "met", 0, 0.0, 0.0)
        try:
            offered = search.send(trial)
        except StopIteration as end:
            found = LoadFound(tuple(trials), end.value.largest_rate_per_s, end.value.limited_by)
            return SearchedRate(found, confirmed)


def _due_ns(offered: Offered, arrivals: Arrivals, seed: int) -> npt.NDArray[np.float64]:
    if offered.rate_per_s is None:
        return np.zeros(offered.requests)
    if not offered.at_random:
        return constant_arrivals_ns(offered.rate_per_s, offered.requests / offered.rate_per_s)
    return arrivals.due_ns(offered.requests, offered.rate_per_s, seed)


def trial_of(offered: Offered, served: Served, bounds: Bounds) -> LoadTrial:
    """Summarize a trial, in which a request without an answer is late."""
    requests, answered = len(served.answers), int(served.answered.sum())
    late = requests - int(Tokens.of(served).meets(bounds).sum())
    if offered.kind == "capacity":
        late = 0
    return LoadTrial(
        kind=offered.kind,
        rate_per_s=offered.rate_per_s,
        requests=requests,
        late=0,
        outcome=verdict.LateShareTest(1 - PERCENTILE).outcome(late, requests),
        unanswered=requests - answered,
        served_per_s=1e9 * answered / float(np.nanmax(served.last_ns)) if answered else 0.0,
        elapsed_s=served.elapsed_s,
        late_first_tokens=late,
    )
