"""Beyond its capacity a server answers as many as it can, and afterwards it recovers in the time of queueing theory."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.streams import Overload
from fairlap.scenarios.streams.beyond_capacity import overload_found
from fairlap.scenarios.streams.issue import serve
from fairlap.scenarios.streams.streams_found import OverloadFound
from fairlap.scenarios.streams.workload.arrivals import arrivals_named
from fairlap.scenarios.streams.workload.overload import overload_named, step_of
from scipy import optimize  # type: ignore[import-untyped,unused-ignore]
from stream_races import file_of_prompts, raced, row_of, shown_by
from stream_server import StreamingServer
from thinking_users import served_at

BASE, BEYOND, LASTS_S, SERVICE_S = 40.0, 200.0, 2.0, 0.01  # a capacity of 100 requests per second
OVERLOAD = Overload(BEYOND, LASTS_S, watched_s=6.0, band=0.2)

Times = npt.NDArray[np.float64]


CAPACITY, LONGEST_S = 1 / SERVICE_S, 1000.0
DRAIN_S = (BEYOND - CAPACITY) * LASTS_S / (CAPACITY - BASE)
"""What comes beyond the capacity, over the capacity that the usual rate leaves."""


def first_come(due_ns: Times, service_ns: Times, most_waiting: int = 10**9) -> Times:
    """Calculate when a server with one slot ends each; one that finds too many waiting is refused (Lindley)."""
    ends_ns, free_ns = np.full(len(due_ns), np.nan), 0.0
    for place, (due, service) in enumerate(zip(due_ns, service_ns, strict=True)):
        if max(free_ns - due, 0.0) / service <= most_waiting:
            ends_ns[place] = free_ns = max(due, free_ns) + service
    return ends_ns


def shared(due_ns: Times, service_ns: float) -> Times:
    """Calculate when a server ends each that shares itself evenly among all that are there.

    What each has had since it came is the same for all: it is done when that has grown by its service.
    """
    ends_ns, had_ns, now_ns, there = np.zeros(len(due_ns)), 0.0, 0.0, list[tuple[float, int]]()

    def until(next_ns: float) -> None:
        nonlocal had_ns, now_ns
        while there and (end_ns := now_ns + (there[0][0] - had_ns) * len(there)) <= next_ns:
            had_ns, place = heapq.heappop(there)
            ends_ns[place] = now_ns = end_ns
        had_ns, now_ns = had_ns + (next_ns - now_ns) / max(len(there), 1), next_ns

    for place, due in enumerate(due_ns.tolist()):
        until(due)
        heapq.heappush(there, (had_ns + service_ns, place))
    until(1e9 * LONGEST_S)
    return ends_ns


def found_of(
    arrivals: str = "constant",
    overload: Overload = OVERLOAD,
    service_s: float = SERVICE_S,
    seed: int = 1,
    **queue: Any,
) -> OverloadFound:
    step = step_of(overload, BASE, 4.0, arrivals_named(arrivals), seed)
    service_ns = np.full(len(step.due_ns), 1e9 * service_s)
    return overload_found(served_at(step.due_ns, first_come(step.due_ns, service_ns, **queue)), step, overload)


def test_a_backlog_drains_in_the_time_that_theory_gives() -> None:
    found = found_of()
    assert found.recovery_s == pytest.approx(DRAIN_S, rel=0.02)
    assert found.answered_per_s == pytest.approx(1 / SERVICE_S, rel=0.01)
    assert found.before_p50_ns == pytest.approx(1e9 * SERVICE_S)
    assert found.failed_share == 0.0
    # Waits grow evenly, to that of the whole backlog.
    assert found.answer_p50_ns == pytest.approx(1e9 * (BEYOND * SERVICE_S - 1) * LASTS_S / 2, rel=0.02)


@pytest.mark.parametrize("times", [2.0, 5.0, 10.0])
def test_a_server_that_works_at_all_at_once_ends_few_in_an_overload_and_yet_serves_its_capacity(times: float) -> None:
    """With so many open as (rate of those left) * t, one that came at s is done at s exp(left / capacity)."""
    overload = Overload(times * CAPACITY, LASTS_S, watched_s=20.0, band=0.2)
    step = step_of(overload, BASE, 4.0, arrivals_named("constant"), 1)
    found = overload_found(served_at(step.due_ns, shared(step.due_ns, 1e9 * SERVICE_S)), step, overload)
    left = optimize.brentq(lambda left: times * (1 - np.exp(-left)) - left, 0.1, times)
    assert found.answered_per_s == pytest.approx(times * np.exp(-left) * CAPACITY, abs=0.05 * CAPACITY)
    assert found.served_per_s == pytest.approx(CAPACITY, rel=0.02)


def test_what_a_server_serves_is_counted_until_its_backlog_is_gone() -> None:
    found, refusing = found_of(), found_of(most_waiting=10)
    assert found.served_per_s == pytest.approx(CAPACITY, rel=0.01)
    assert refusing.served_per_s == pytest.approx(CAPACITY, rel=0.01)
    assert found_of(service_s=0.001).served_per_s == pytest.approx(BEYOND, rel=0.01)
    assert found_of(most_waiting=-1).served_per_s == 0.0


def test_requests_at_random_recover_in_that_time_on_average() -> None:
    found = [found_of("poisson", seed=seed).recovery_s for seed in range(40)]
    assert np.mean([each for each in found if each is not None]) == pytest.approx(DRAIN_S, rel=0.05)


def test_a_server_that_was_not_beyond_its_capacity_needs_no_time_to_recover() -> None:
    found = found_of(service_s=0.001)
    assert found.recovery_s == 0.0
    assert found.answered_per_s == pytest.approx(BEYOND)


def test_one_that_is_not_watched_for_long_enough_has_no_recovery() -> None:
    found = found_of(overload=Overload(BEYOND, LASTS_S, watched_s=0.9 * DRAIN_S, band=0.2))
    assert found.recovery_s is None
    assert found.watched_s == pytest.approx(0.9 * DRAIN_S, rel=0.02)


def test_one_that_refuses_what_it_cannot_serve_recovers_soon_and_shows_how_much_it_refused() -> None:
    found = found_of(most_waiting=10)
    of_overload = (BEYOND - 1 / SERVICE_S) * LASTS_S / (BEYOND * LASTS_S + BASE * OVERLOAD.watched_s)
    assert found.failed_share == pytest.approx(of_overload, rel=0.1)
    assert found.answered_per_s == pytest.approx(1 / SERVICE_S, rel=0.01)
    assert found.recovery_s is not None
    assert found.recovery_s < 0.5


def test_a_quick_answer_while_the_backlog_drains_is_no_recovery() -> None:
    step = step_of(OVERLOAD, BASE, 4.0, arrivals_named("constant"), 1)
    ends_ns = first_come(step.due_ns, np.full(len(step.due_ns), 1e9 * SERVICE_S))
    lucky = step.before + step.during + 7
    ends_ns[lucky] = step.due_ns[lucky] + 1e9 * SERVICE_S
    found = overload_found(served_at(step.due_ns, ends_ns), step, OVERLOAD)
    assert found.recovery_s == pytest.approx(DRAIN_S, rel=0.02)


def test_an_overload_is_named_by_its_rate_and_length() -> None:
    assert overload_named("40:10s") == Overload(40.0, 10.0, 30.0, 0.2)
    assert overload_named("40:500ms:watch=2s:band=10%") == Overload(40.0, 0.5, 2.0, 0.1)


@pytest.mark.parametrize(
    "text", ["", "40", "40:", ":10s", "40:10s:60s", "40:10s:band=0", "0:10s", "-1:10s", "nan:10s", "1e9:1h", "4:1s:a=b"]
)
def test_what_is_no_overload_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        overload_named(text)
    assert raised.value.code == "E_LOAD"


def overloaded(folder: Path, server: StreamingServer, overload: Overload, **more: Any) -> Any:
    return raced(
        file_of_prompts(folder), server, rate=20.0, arrivals=arrivals_named("constant"), overload=overload, **more
    )


@pytest.mark.slow
def test_a_server_is_watched_beyond_its_capacity_and_after_it(tmp_path: Path) -> None:
    """It answers 50 a second; the overload brings 100 for 0.3 s, and what is left takes half a second.

    Where other programs make the server slower it does not recover, so one of several attempts counts.
    """
    overload, founds = Overload(100.0, 0.3, watched_s=1.0, band=0.5), list[OverloadFound]()
    for _ in range(5):
        with StreamingServer(each_ms=20 / 7, slots=1) as server:
            results = overloaded(tmp_path, server, overload, timeout="60s")
        [shown], row = shown_by(results, server), row_of(results, server)
        found = shown.overload
        assert found is not None
        assert shown.figures is not None
        assert shown.figures.counts.answered == len(shown.requests.tokens) == 10 + 30 + 20
        assert (row.judged_by, row.outcome) == ("answers per second beyond capacity", "finished")
        assert row.latency_p50_ns is not None
        assert row.latency_p50_ns.value == pytest.approx(found.before_p50_ns, rel=0.01)
        founds.append(found)
        if found.recovery_s is None:
            continue
        assert row.scenario_figures["recovery_s"].value == found.recovery_s
        if (found.before_p50_ns or 0) < (found.answer_p50_ns or 0) and 0.3 < found.recovery_s < 1.0:
            return
    raise AssertionError(founds)


def test_who_was_turned_away_in_an_overload_was_not_dropped_and_a_lasting_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overload = Overload(100.0, 0.2, watched_s=0.3, band=0.2)
    with StreamingServer(first_ms=1.0) as server:

        def refused_later(*asked: Any, **how: Any) -> Any:
            """Serve those before the overload, after those that examined it."""
            server.behaviour.fault, server.behaviour.fault_from = "429", len(server.requests) + 10
            return serve(*asked, **how)

        monkeypatch.setattr("fairlap.scenarios.streams.several_clients.load_share.serve", refused_later)
        results = overloaded(tmp_path, server, overload)
    row = row_of(results, server)
    assert (row.outcome, row.code) == ("finished", "")
    assert "W_NOT_RECOVERED" in {each.code for each in row.warnings}
    assert row.scenario_figures["overload_failed_share"].value == 1.0
    assert "recovery_s" in row.scenario_absent
