"""The search for the largest rate under a bound: which trial comes next, from what the ones before showed.

First the capacity, with all requests due at once, and a lone request at a time, which has no queue. Then the rate is
found by bisection on its logarithm; the miss that bounds it has to happen again in a trial of the whole length. The
trials after it have a fixed length: their percentiles are not those of a trial that ended because it was decided.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from fairlap import verdict
from fairlap.request.fields.load import Load
from fairlap.scenarios.load.load_messages import LimitedBy, LoadTrial, TrialKind

RESOLUTION = 1.05  # the smallest ratio of a rate that missed to one that met
_FIRST_SHARE = 0.7  # of the capacity
_SMALLEST_SHARE = 1 / 64
_LONE_SHARE = 1 / 3  # at equal distances, of what one worker serves one by one
_CAPACITY_S = 0.5
_FEWEST_IN_CAPACITY, _MOST_REQUESTS = 32, 200_000
_SHORTEST_TRIAL = 0.25  # times as long as asked: a stall of the machine may fill a shorter one
_BOUNDS_IN_A_TRIAL = 10  # in less time, the queue of a rate above the capacity has not grown beyond the bound
_LONGEST_TRIAL = 5.0  # times as long as asked, for a trial of too few requests
_MISSES_OF_A_STEP = 3
_CURVE_SHARES = (0.25, 0.5, 0.75)  # of the largest rate
_ITEMS_COMPARED = 24
_TIMES_AS_LONG, _LONGER_NS = 3.0, 20e3
_COMPARED_AGAIN = 3


@dataclass(frozen=True)
class Offered:
    """One trial. Without a rate, all requests are due at once."""

    kind: TrialKind
    requests: int
    rate_per_s: float | None = None
    at_random: bool = True
    ends_early: bool = False
    fewest: int = 0  # requests before it may end early
    items: Literal["pool", "one", "unique"] = "pool"


@dataclass(frozen=True)
class Searched:
    largest_rate_per_s: float | None
    limited_by: LimitedBy
    kept_answers: str = ""  # why its answers seem to be kept from before; empty where they do not


Search = Generator[Offered, LoadTrial, Searched]


def rate_search(load: Load, call_s: float, *, curve: bool) -> Search:
    """Search the largest rate.

    ``call_s`` is about what a call takes; ``curve`` adds trials at rates below the largest one.
    """
    calls = _CAPACITY_S / max(call_s, 1e-9) * load.workers
    if not load.searches:
        return Searched(None, "", (yield from _kept_answers()))
    capacity = (yield Offered("capacity", _between(_FEWEST_IN_CAPACITY, calls, _MOST_REQUESTS))).served_per_s
    if not capacity:
        return Searched(None, "no_rate")
    rate, requests = _LONE_SHARE / max(call_s, 1 / capacity), 0
    test = verdict.LateShareTest(1 - load.percentile)
    requests = _between(test.fewest // 2, rate * load.trial_s, _MOST_REQUESTS)
    lone = yield Offered("lone", min(requests, max(int(rate * _longest_s(load)), 3)), rate, at_random=False)
    if test.is_missed(lone.most_late, lone.requests) or 2 * lone.most_late > lone.requests:
        return Searched(None, "lone_request")
    found = yield from _bisected(load, capacity)
    if found.largest_rate_per_s is not None:
        found = yield from _confirmed(load, found, smallest_rate(load, capacity))
    if curve and found.largest_rate_per_s is not None:
        for share in _CURVE_SHARES:
            rate = share * found.largest_rate_per_s
            yield Offered("curve", _requests_of_a_trial(load, rate), rate)
    kept = yield from _kept_answers()
    return Searched(found.largest_rate_per_s, found.limited_by, kept)


def _confirmed(load: Load, found: Searched, smallest: float) -> Search:
    """Confirm a rate in a trial of the whole length; a rate that misses the bound is lowered until one meets it.

    The largest of several rates that met it by a trial each did so with luck more often than not.
    """
    assert found.largest_rate_per_s is not None
    rate, limited_by, misses = found.largest_rate_per_s, found.limited_by, 0
    while True:
        trial = yield Offered("at_largest_rate", _requests_of_a_trial(load, rate), rate)
        if trial.outcome == "met":
            return Searched(rate, limited_by)
        if rate <= smallest:
            return Searched(None, "no_rate")
        misses += 1
        step = RESOLUTION ** (1 + misses // _MISSES_OF_A_STEP)  # it was far off
        rate, limited_by = max(rate / step, smallest), trial.missed_bound


def smallest_rate(load: Load, capacity: float) -> float:
    """Below it, the longest trial has too few requests to say anything."""
    return max(_SMALLEST_SHARE * capacity, verdict.LateShareTest(1 - load.percentile).fewest / _longest_s(load))


def _bisected(load: Load, capacity: float) -> Search:
    low: float | None = None
    high: float | None = None
    bound_s = load.bound_s or 0.0
    smallest = min(smallest_rate(load, capacity), capacity)
    rate = max(_FIRST_SHARE * capacity, smallest)
    while True:
        requests = _requests_of_a_trial(load, rate)
        fewest = min(int(rate * max(_SHORTEST_TRIAL * load.trial_s, _BOUNDS_IN_A_TRIAL * bound_s)), requests)
        # The engine decides early by whole answers alone: when their first token came is known after the trial.
        trial = yield Offered("search", requests, rate, ends_early=load.bound_s is not None, fewest=fewest)
        if trial.outcome == "met":
            low = rate
        else:
            high = rate
        if high is None and rate >= capacity:
            return Searched(rate, "capacity")
        if low is None and rate <= smallest:
            return Searched(None, "no_rate")
        if low is not None and high is not None and high / low <= RESOLUTION:
            return (yield from _missed_again(load, low, high, capacity))
        if low is None:
            rate = max(rate / 2, smallest)
        elif high is None:
            rate = capacity
        else:
            rate = math.sqrt(low * high)


def _missed_again(load: Load, low: float, high: float, capacity: float) -> Search:
    """Try the rate above in a trial of the whole length, and larger ones after it, until one misses there too.

    What missed in a trial that ended early may have been a stall of the machine, and no larger rate was tried since.
    """
    while True:
        trial = yield Offered("search", _requests_of_a_trial(load, high), high)
        if trial.outcome != "met":
            return Searched(low, trial.missed_bound)
        if high >= capacity:
            return Searched(high, "capacity")
        low, high = high, min(high * RESOLUTION, capacity)


def largest_met(trials: tuple[LoadTrial, ...]) -> float | None:
    """Of a search that was broken off: the largest rate so far that met the bound, with none below it that missed."""
    rates = {each.rate_per_s: each.outcome for each in trials if each.kind == "search" and each.rate_per_s is not None}
    missed = min((rate for rate, outcome in rates.items() if outcome == "missed"), default=math.inf)
    return max((rate for rate, outcome in rates.items() if outcome == "met" and rate < missed), default=None)


def _kept_answers() -> Generator[Offered, LoadTrial, str]:
    """Accuse a contestant of keeping answers if it is much faster on one item over and over, time after time.

    It is compared with items that occur once (the idea of MLPerf's audit TEST04).
    """
    for _ in range(_COMPARED_AGAIN):
        one = yield Offered("one_item", _ITEMS_COMPARED, items="one")
        unique = yield Offered("unique_items", _ITEMS_COMPARED, items="unique")
        if one.times is None or unique.times is None:
            return ""
        one_ns, unique_ns = one.times.service_p50_ns, unique.times.service_p50_ns
        if unique_ns <= _TIMES_AS_LONG * one_ns + _LONGER_NS:
            return ""
    times = unique_ns / max(one_ns, 1.0)
    return f"requests about items that occur once took {times:.1f} times as long as those about one item"


def _requests_of_a_trial(load: Load, rate: float) -> int:
    """As many as are due in its time; in more time, as many as it takes to see the percentile."""
    fewest = verdict.LateShareTest(1 - load.percentile).fewest
    most = max(int(rate * _longest_s(load)), 1)
    return min(_between(fewest, rate * load.trial_s, _MOST_REQUESTS), most)


def _longest_s(load: Load) -> float:
    return _LONGEST_TRIAL * load.trial_s


def _between(least: float, value: float, most: float) -> int:
    return int(min(max(value, least), most))
