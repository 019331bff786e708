"""A machine that stalls now and then does not show that a lone request takes too long.

The outside truth is Lindley's recursion: a server of a known service time whose machine stops for a known time.
"""

from __future__ import annotations

import numpy as np
import pytest
from fairlap import verdict
from fairlap.engine.load import LoadResult
from fairlap.request.fields.load import Load
from fairlap.scenarios.load.load_messages import LoadTrial, OfferLoad
from fairlap.scenarios.load.race.rate_search import Offered, Searched, rate_search
from fairlap.scenarios.load.serving import trial_of

MS = 1e-3
_SERVICE_S, _BOUND_S = 0.1 * MS, 20 * MS
_LOAD = Load(0.99, _BOUND_S)
_STALL_AFTER_S = 0.5
_NO_STALL = 0.0


def offered_of(offered: Offered) -> OfferLoad:
    return OfferLoad(
        kind=offered.kind,
        requests=offered.requests,
        bound_s=_BOUND_S,
        percentile=_LOAD.percentile,
        seed=0,
        path="",
        rate_per_s=offered.rate_per_s,
    )


def served(offered: Offered, service_s: float, stall_s: float) -> LoadTrial:
    """By one worker, which is stopped once in the trial for so long, in the middle of a service."""
    rng = np.random.default_rng(offered.requests)
    due = np.zeros(offered.requests)
    if offered.rate_per_s is not None:
        places = np.sort(rng.random(offered.requests)) * offered.requests
        due = (places if offered.at_random else np.arange(offered.requests)) / offered.rate_per_s
    started, completed = np.empty_like(due), np.empty_like(due)
    free, stalled = 0.0, False
    for number, at in enumerate(due):
        started[number] = max(free, at)
        free = started[number] + service_s
        if not stalled and free > _STALL_AFTER_S:
            free, stalled = free + stall_s, True
        completed[number] = free
    result = LoadResult(
        due_ns=1e9 * due,
        issued_ns=1e9 * due,
        started_ns=1e9 * started,
        completed_ns=1e9 * completed,
        worker=np.zeros(len(due), np.int32),
        group=np.arange(len(due), dtype=np.int32),
        decided="",
        interrupted=False,
        gave_up=False,
        elapsed_ns=1e9 * free,
        left_in_call=0,
        collector_paused=True,
    )
    return trial_of(offered_of(offered), result)


def searched(service_s: float, stall_s: float) -> tuple[Searched, list[LoadTrial]]:
    """Only the trial of lone requests is stopped."""
    search, trials = rate_search(_LOAD, service_s, curve=False), []
    offered = next(search)
    while True:
        trials.append(served(offered, service_s, stall_s if offered.kind == "lone" else _NO_STALL))
        try:
            offered = search.send(trials[-1])
        except StopIteration as end:
            return end.value, trials


def test_a_stall_while_lone_requests_are_served_leaves_the_rate_that_is_found_as_it_is() -> None:
    calm, stalled = searched(_SERVICE_S, _NO_STALL)[0], searched(_SERVICE_S, 60 * MS)[0]
    assert calm.largest_rate_per_s == pytest.approx(1 / _SERVICE_S, rel=0.05)
    assert stalled == calm


def test_of_lone_requests_the_one_in_service_is_late_by_a_stall_and_those_that_wait_for_it_are_not() -> None:
    lone = next(trial for trial in searched(_SERVICE_S, 60 * MS)[1] if trial.kind == "lone")
    rate = 1 / (3 * _SERVICE_S)
    assert lone.requests == int(rate * _LOAD.trial_s)
    assert lone.late == 1
    assert lone.times is not None
    assert lone.times.p99_ns > 1e9 * _BOUND_S  # what they waited is in their latency all the same


def test_lone_requests_that_take_longer_than_the_bound_by_themselves_are_all_late() -> None:
    found, trials = searched(1.1 * _BOUND_S, _NO_STALL)
    assert found == Searched(None, "lone_request")
    assert (trials[-1].kind, trials[-1].late) == ("lone", trials[-1].requests)


def test_at_random_a_request_that_waits_behind_a_stall_counts_from_when_it_was_due() -> None:
    offered = Offered("search", 10_000, 1 / (3 * _SERVICE_S))
    late = served(offered, _SERVICE_S, 60 * MS).late
    assert late > verdict.LateShareTest(0.01).share * offered.requests
