"""The search finds the rate at which a queue of known service times begins to miss its bound, and warns of doubts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap import verdict
from fairlap.request.fields.load import Load
from fairlap.scenarios.load.load_messages import LoadFound, LoadTimes, LoadTrial
from fairlap.scenarios.load.race.load_run import notices
from fairlap.scenarios.load.race.rate_search import RESOLUTION, Offered, Searched, largest_met, rate_search

MS = 1e-3
_OF_RATES = ("search", "at_largest_rate")


class Queue:
    """One worker; requests are served in order (Lindley).

    ``one_item_s`` is the time of items that were seen before, and ``after_first_s`` what is left of a service after its
    first token.
    """

    def __init__(self, service_s: float, one_item_s: float | None = None, after_first_s: float = 0.0) -> None:
        self._service_s, self._one_item_s = service_s, service_s if one_item_s is None else one_item_s
        self._after_first_s = after_first_s
        self._rng = np.random.default_rng(3)

    def trial(self, offered: Offered, load: Load) -> LoadTrial:
        due = np.zeros(offered.requests)
        if offered.rate_per_s is not None:
            places = np.sort(self._rng.random(offered.requests)) * offered.requests
            due = (places if offered.at_random else np.arange(offered.requests)) / offered.rate_per_s
        service_s = self._one_item_s if offered.items == "one" else self._service_s
        ends = np.empty(len(due))
        free = 0.0
        for number, at in enumerate(due):
            free = max(free, at) + service_s
            ends[number] = free
        latency = ends - due
        late = np.cumsum(latency > (math.inf if load.bound_s is None else load.bound_s))
        first_s = math.inf if load.first_token_s is None else load.first_token_s
        late_first = np.cumsum(latency - self._after_first_s > first_s)
        test = verdict.LateShareTest(1 - load.percentile)
        count = len(due)
        if offered.ends_early:
            missed_at, met_at = test.limits(count, offered.fewest)
            met = (late <= met_at[1:]) & (load.first_token_s is None)
            over = (late >= missed_at[1:]) | met
            count = int(over.argmax()) + 1 if over.any() else count
        outcome = test.outcome(int(max(late[count - 1], late_first[count - 1])), count)
        p50, p90, p99 = np.quantile(latency[:count], (0.5, 0.9, 0.99)) * 1e9
        times = LoadTimes(p50, p90, p99, service_s * 1e9, 0.0)
        return LoadTrial(
            offered.kind, offered.rate_per_s, count, int(late[count - 1]), outcome, 0, count / ends[count - 1],
            float(ends[count - 1]), times, late_first_tokens=int(late_first[count - 1]),
        )  # fmt: skip


def searched(load: Load, queue: Queue, *, curve: bool = False) -> tuple[Searched, list[LoadTrial]]:
    search = rate_search(load, queue._service_s, curve=curve)
    trials: list[LoadTrial] = []
    offered = next(search)
    while True:
        trials.append(queue.trial(offered, load))
        try:
            offered = search.send(trials[-1])
        except StopIteration as end:
            return end.value, trials


def rate_of_md1(service_s: float, bound_s: float, percentile: float) -> float:
    """Find the rate at which this share of a long queue with constant service times is within the bound."""
    rng = np.random.default_rng(1)
    gaps = rng.exponential(1.0, 200_000)
    low, high = 0.0, 1 / service_s
    for _ in range(20):
        rate = (low + high) / 2
        steps = service_s - gaps / rate
        walk = np.cumsum(steps)
        waits = walk - np.minimum.accumulate(np.minimum(walk, 0))
        low, high = (rate, high) if (waits + service_s <= bound_s).mean() >= percentile else (low, rate)
    return low


@pytest.mark.slow_but("0.9-0.004")
@pytest.mark.parametrize(("percentile", "bound_s"), [(0.99, 6 * MS), (0.9, 4 * MS), (0.5, 2.2 * MS)])
def test_the_rate_of_a_queue_of_known_service_times_is_found(percentile: float, bound_s: float) -> None:
    truth = rate_of_md1(MS, bound_s, percentile)
    load = Load(percentile, bound_s, trial_s=4.0)
    found = [searched(load, queue)[0] for queue in [Queue(MS)] for _ in range(15)]
    assert {each.limited_by for each in found} == {"bound"}
    rates = [each.largest_rate_per_s for each in found]
    assert np.median([rate for rate in rates if rate is not None]) == pytest.approx(truth, rel=0.06)


def test_the_rate_is_bracketed_as_closely_as_stated() -> None:
    found, trials = searched(Load(0.99, 6 * MS), Queue(MS))
    missed = [each.rate_per_s for each in trials if each.kind in _OF_RATES and each.outcome == "missed"]
    assert found.largest_rate_per_s is not None
    assert min(rate for rate in missed if rate is not None) / found.largest_rate_per_s <= RESOLUTION * 1.0001


def test_the_rate_that_is_found_meets_the_bound_in_a_trial_of_the_whole_length() -> None:
    found, trials = searched(Load(0.99, 6 * MS), Queue(MS))
    last = [each for each in trials if each.kind == "at_largest_rate"][-1]
    assert (last.rate_per_s, last.outcome) == (found.largest_rate_per_s, "met")
    assert last.requests == pytest.approx(2 * (last.rate_per_s or 0), abs=1)


def test_a_bound_that_the_capacity_meets_does_not_limit_the_rate() -> None:
    found, trials = searched(Load(0.9, 10.0), Queue(MS))
    assert found.limited_by == "capacity"
    assert found.largest_rate_per_s == pytest.approx(trials[0].served_per_s)


def test_where_even_a_lone_request_is_too_slow_there_is_no_rate_and_no_search() -> None:
    found, trials = searched(Load(0.99, 0.5 * MS), Queue(MS))
    assert found == Searched(None, "lone_request")
    assert [each.kind for each in trials] == ["capacity", "lone"]


def test_where_only_a_lone_request_meets_the_bound_no_rate_is_claimed() -> None:
    found, _ = searched(Load(0.99, 1.001 * MS, trial_s=0.5), Queue(MS))
    assert (found.largest_rate_per_s, found.limited_by) == (None, "no_rate")


def test_trials_of_the_curve_follow_the_search_and_never_end_early() -> None:
    found, trials = searched(Load(0.99, 6 * MS), Queue(MS), curve=True)
    rate = found.largest_rate_per_s
    assert rate is not None
    after = [each for each in trials if each.kind in ("at_largest_rate", "curve")]
    shares = [each.rate_per_s / rate for each in after if each.rate_per_s is not None]
    assert shares[-4:] == pytest.approx([1.0, 0.25, 0.5, 0.75])
    assert all(each.requests >= 100 for each in after)


def test_a_bound_on_the_first_token_finds_the_rate_at_which_its_queue_begins_to_miss_it() -> None:
    truth = rate_of_md1(MS, 6 * MS + 0.7 * MS, 0.99)  # the first token comes 0.7 ms before the end of a service
    load = Load(0.99, None, trial_s=4.0, first_token_s=6 * MS)
    queue = Queue(MS, after_first_s=0.7 * MS)
    found = [searched(load, queue)[0] for _ in range(9)]
    assert {each.limited_by for each in found} == {"first_token"}
    rates = [each.largest_rate_per_s for each in found]
    assert np.median([rate for rate in rates if rate is not None]) == pytest.approx(truth, rel=0.06)


@pytest.mark.parametrize(
    ("bound_ms", "first_ms", "limited_by"), [(6, 5.9, "bound"), (12, 3, "first_token"), (6, 1000, "bound")]
)
def test_of_two_bounds_the_one_that_is_missed_first_limits_the_rate(
    bound_ms: float, first_ms: float, limited_by: str
) -> None:
    queue = Queue(MS, after_first_s=0.7 * MS)
    load = Load(0.99, bound_ms * MS, trial_s=4.0, first_token_s=first_ms * MS)
    found = [searched(load, queue) for _ in range(5)]
    tighter_ms = min(bound_ms, first_ms + 0.7)
    assert {both.limited_by for both, _ in found} == {limited_by}
    rates = [both.largest_rate_per_s or 0.0 for both, _ in found]
    assert np.median(rates) == pytest.approx(rate_of_md1(MS, tighter_ms * MS, 0.99), rel=0.1)
    for _, trials in found:
        last = [each for each in trials if each.kind == "at_largest_rate"][-1]
        assert last.most_late <= 0.01 * last.requests


def test_where_the_first_token_of_a_lone_request_is_too_late_there_is_no_rate() -> None:
    load = Load(0.99, 1.0, first_token_s=0.2 * MS)
    found, _ = searched(load, Queue(MS, after_first_s=0.7 * MS))
    assert found == Searched(None, "lone_request")


def test_trials_do_not_end_early_where_only_the_first_token_has_a_bound() -> None:
    _, trials = searched(Load(0.9, None, first_token_s=6 * MS), Queue(MS))
    assert all(each.requests >= 2 * (each.rate_per_s or 0) - 1 for each in trials if each.kind == "search")


def test_answers_that_are_fast_for_one_item_alone_are_kept_from_before() -> None:
    honest, _ = searched(Load(0.99, 6 * MS), Queue(MS))
    keeping, trials = searched(Load(0.99, 6 * MS), Queue(MS, one_item_s=0.05 * MS))
    assert honest.kept_answers == ""
    assert "20.0 times" in keeping.kept_answers
    assert sum(each.kind == "one_item" for each in trials) == 3


def test_a_search_that_is_broken_off_has_the_largest_rate_below_every_miss() -> None:
    def trial(rate: float, outcome: str) -> LoadTrial:
        return LoadTrial("search", rate, 100, 0, outcome, 0, rate, 1.0)  # type: ignore[arg-type]

    assert largest_met((trial(70, "met"), trial(100, "missed"), trial(80, "met"))) == 80
    assert largest_met((trial(70, "missed"),)) is None
    assert largest_met(()) is None


def test_a_trial_has_the_requests_of_its_time_or_as_many_as_show_the_percentile() -> None:
    offers = []
    search = rate_search(Load(0.99, 1.0, trial_s=1.0), 0.01, curve=False)
    offered, queue = next(search), Queue(0.01)
    while offered.kind != "at_largest_rate":
        offers.append(offered)
        offered = search.send(queue.trial(offered, Load(0.99, 1.0, trial_s=1.0)))
    first = next(each for each in offers if each.kind == "search")
    assert (first.requests, first.fewest) == (100, 100)  # 70 a second for one second would not show a p99
    assert math.isclose(first.rate_per_s or 0, 70, rel_tol=0.05)


class StallingQueue(Queue):
    """The machine stops once for so long, in the first trial of the search."""

    def __init__(self, service_s: float, stall_s: float) -> None:
        super().__init__(service_s)
        self._stall_s, self._stalled = stall_s, False

    def trial(self, offered: Offered, load: Load) -> LoadTrial:
        if offered.kind != "search" or self._stalled:
            return super().trial(offered, load)
        self._stalled = True
        assert offered.rate_per_s is not None
        late = math.ceil(self._stall_s * offered.rate_per_s)  # all that were due meanwhile
        count = max(offered.fewest, late)
        assert late >= verdict.LateShareTest(1 - load.percentile).limits(count, offered.fewest)[0][count]
        times = LoadTimes(self._service_s * 1e9, self._stall_s * 1e9, self._stall_s * 1e9, self._service_s * 1e9, 0.0)
        return LoadTrial(offered.kind, offered.rate_per_s, count, late, "missed", 0, offered.rate_per_s, 1.0, times)


def test_a_rate_that_missed_because_the_machine_stalled_once_does_not_bound_the_one_that_is_found() -> None:
    bound_s = 20 * MS
    truth = rate_of_md1(MS, bound_s, 0.99)
    load = Load(0.99, bound_s)
    rates, first = [], []
    for _ in range(9):
        found, trials = searched(load, StallingQueue(MS, 80 * MS))
        rates.append(found.largest_rate_per_s or 0.0)
        first.append(next(each for each in trials if each.kind == "search"))
    assert max(each.rate_per_s or 0.0 for each in first) < 0.85 * truth
    assert np.median(rates) == pytest.approx(truth, rel=0.06)


BOUND = Load(0.99, 0.02)


def found(lateness_ns: float) -> LoadFound:
    times = LoadTimes(1e6, 2e6, 3e6, 1e6, lateness_ns)
    trial = LoadTrial("at_largest_rate", 500.0, 1000, 3, "met", 0, 500.0, 2.0, times)
    return LoadFound((trial,), 500.0, "bound")


def codes(of: LoadFound, load: Load = BOUND) -> list[str]:
    return [notice.code for notice in notices(of, load)]


def test_a_search_that_the_bound_ended_on_a_quiet_machine_has_no_warning() -> None:
    assert codes(found(1e5)) == []


def test_requests_that_are_issued_late_by_a_tenth_of_the_bound_are_named() -> None:
    assert codes(found(2.1e6)) == ["W_LATE_REQUESTS"]
    assert codes(found(1.9e6)) == []


def test_the_shorter_of_two_bounds_says_what_is_late() -> None:
    assert codes(found(1.9e6), Load(0.99, 0.02, first_token_s=0.005)) == ["W_LATE_REQUESTS"]
    assert codes(found(1.9e6), Load(0.99, None, first_token_s=0.02)) == []


def test_a_search_without_a_rate_has_no_warning() -> None:
    assert codes(LoadFound((), None, "lone_request")) == []
