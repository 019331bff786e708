"""All servers of a block get as many requests, so that the turn of the slowest keeps near --trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairlap.request.fields.streams import StreamLoad
from fairlap.scenarios.streams.race.turn_length import TurnRequests
from stream_races import codes, raced, row_of, shown_by
from stream_server import StreamingServer


def requests_for(trial_s: float, slowest_alone_s: float, **load: Any) -> TurnRequests:
    return TurnRequests(StreamLoad("p", "0", 8, **load), trial_s, slowest_alone_s)


def lengths(requests: TurnRequests, took_s: Callable[[int], float], blocks: int = 6) -> list[tuple[int, float]]:
    """Play blocks of a server that takes so long for so many requests."""
    found = []
    for _ in range(blocks):
        found.append((requests.now, took_s(requests.now)))
        requests.follow([requests.length_of(found[-1][1]), requests.length_of(0.0)])
    return found


def test_a_rate_that_all_follow_keeps_its_requests() -> None:
    requests = requests_for(2.0, 0.1, rate_per_s=50.0)
    assert lengths(requests, lambda count: count / 50 + 0.1) == [(100, 2.1)] * 6


@pytest.mark.parametrize("service_s", [0.05, 0.2, 0.5])
def test_a_server_that_cannot_follow_a_rate_gets_as_many_as_it_answers_in_time(service_s: float) -> None:
    requests = requests_for(6.0, service_s, rate_per_s=200.0)
    _, *later = lengths(requests, lambda count: service_s * count)
    for count, took_s in later:
        assert count >= 10
        assert count == 10 or 3.0 <= took_s <= 12.0


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_users_of_a_slow_server_ask_as_often_as_it_answers_in_time_however_many_it_serves_at_once(at_once: int) -> None:
    requests = requests_for(8.0, 0.4, concurrency=8)
    first, *later = lengths(requests, lambda count: 0.4 * count / at_once)
    assert first[0] == 8 * 8.0 / 0.4
    for count, took_s in later:
        assert count == 16 or 4.0 <= took_s <= 16.0


def test_one_slow_block_does_not_shorten_all_others() -> None:
    requests = requests_for(1.0, 0.01, rate_per_s=100.0)
    requests.follow([requests.length_of(10.0)])
    assert requests.now == 10
    for _ in range(4):
        requests.follow([requests.length_of(requests.now / 100 * 0.4)])
    assert requests.now == 100


def test_users_think_too() -> None:
    assert requests_for(60.0, 1.0, concurrency=4, think_s=5.0).now == 40
    assert requests_for(60.0, 1.0, concurrency=4, think_s=5.0, requests_in_a_session=2.0).now == 20


def test_a_block_without_a_turn_changes_nothing() -> None:
    requests = requests_for(1.0, 0.1, rate_per_s=40.0)
    requests.follow([])
    assert requests.now == 40


def test_a_slow_server_beside_a_fast_one_says_when_the_fewest_requests_take_longer(prompts: Path) -> None:
    pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")
    with StreamingServer() as fast, StreamingServer(first_ms=150.0, slots=1) as slow:
        began_s = time.monotonic()
        found = raced(prompts, fast, slow, rate=None, concurrency=2, trial=0.1, blocks=2)
        took_s = time.monotonic() - began_s
    turns = [[each.turn for each in shown_by(found, server)] for server in (fast, slow)]
    assert [[each.sessions for each in own if each] for own in turns] == [[4, 4], [4, 4]]  # two of each user
    assert "W_LONG_TURNS" in codes(row_of(found, slow))
    assert ("W_LONG_TURNS" in codes(row_of(found, fast))) == any(each and each.took_s > 0.2 for each in turns[0])
    assert all(each is not None and 0.5 < each.took_s < took_s for each in turns[1])
