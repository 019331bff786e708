"""What the client adds to times is measured on a server of known times, and a row that it limits is not ranked."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.results.row import Row
from fairlap.scenarios.generation import TIME_TO_FIRST_TOKEN
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.scenarios.streams.answers import Answer
from fairlap.scenarios.streams.clients.client import StreamClient
from fairlap.scenarios.streams.clients.events import EventReader
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.floor.client_floor import requests_for_floor
from fairlap.scenarios.streams.floor.client_limit import figures_at_floor, why_client_limits
from fairlap.scenarios.streams.floor.known_server import known_server
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.protocols.openai import Completions
from fairlap.scenarios.streams.streams_found import ClientFloor, Counts, Percentiles, StreamFigures, StreamsFound
from fairlap.scenarios.streams.workload.sessions import Session
from stream_races import codes, file_of_prompts, raced, raced_by_name, row_of, shown_by
from stream_server import StreamingServer, in_a_process

HOW: dict[str, Any] = {"rate": 100.0, "trial": 0.2}
needs_httpx = pytest.mark.usefixtures("httpx")


@pytest.fixture(autouse=True)
def known_client() -> None:
    """Measure what the client adds, unlike other tests of streams."""


@pytest.fixture
def httpx() -> None:
    pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return file_of_prompts(tmp_path, 20)


def asked_by_hand(port: int, path: str) -> list[dict[str, Any]]:
    """Read the events of an answer with sockets alone."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        body = json.dumps({"prompt": "Hi", "max_tokens": 3}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(head + body)
        whole = b""
        while not whole.endswith(b"0\r\n\r\n"):
            whole += connection.recv(65_536)
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    return [json.loads(each[6:]) for each in whole.split(b"\r\n") if each.startswith(b'data: {"')]


def test_the_known_server_says_when_it_had_a_request_and_wrote_each_piece() -> None:
    with known_server() as port:
        before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        events = asked_by_hand(port, "/4/completions")
        after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    stamps_ns = [int(each) for event in events for each in event["choices"][0]["text"].split()]
    assert len(stamps_ns) == 1 + 4
    assert all(a < b for a, b in pairwise([before_ns, *stamps_ns, after_ns]))
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 4]


def test_nothing_is_left_of_the_known_server() -> None:
    with known_server() as port:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.slow_but("how0")
@needs_httpx
@pytest.mark.parametrize("how", [{}, {"rate": None, "concurrency": 2}])
def test_a_row_has_what_the_client_adds(how: dict[str, Any], prompts: Path) -> None:
    with in_a_process(first_ms=8.0, each_ms=0.5) as server:
        found = raced(prompts, server, **{**HOW, **how, "blocks": 2})
    floors = [each.client_floor for each in shown_by(found, server)]
    assert len(floors) == 2
    row = row_of(found, server)
    for floor in floors:
        assert floor is not None
        assert 20 <= floor.answered == floor.requests <= 100
        assert floor.first_token is not None
        assert 0 < floor.first_token.p50_ns <= floor.first_token.p90_ns
    for part in ("first_token", "per_token", "whole_answer"):
        p50_ns, p90_ns = (row.scenario_figures[f"client_{part}_p{percent}_ns"].value for percent in (50, 90))
        assert 0 < p50_ns <= p90_ns
        each_ns = [getattr(floor, part).p50_ns for floor in floors]
        assert min(each_ns) <= p50_ns * 1.001 <= max(each_ns) * 1.002
    assert "100" in row.scenario_absent["client_first_token_p99_ns"]


@pytest.mark.slow
@needs_httpx
def test_the_client_neither_thinks_nor_converses_when_what_it_adds_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = tmp_path / "chats.jsonl"
    prompts.write_text('{"turns": ["Hi", "Why", "So"]}\n')
    offered: list[Sequence[Session]] = []
    offer = Contestant.offer

    def noted(self: Contestant, asked: Any, sessions: Sequence[Session], *more: Any, **how: Any) -> Served:
        offered.append(sessions)
        return offer(self, asked, sessions, *more, **how)

    monkeypatch.setattr(Contestant, "offer", noted)
    how: dict[str, Any] = {"rate": None, "concurrency": 2, "think": 0.05, "trial": 0.01}
    with in_a_process(first_ms=8.0) as server:
        [shown] = shown_by(raced(prompts, server, **how), server)
    to_server, to_own = offered
    assert {(len(each.tokens), len(each.thinks_ns), len(each.says)) for each in to_server} == {(3, 3, 2)}
    assert {(len(each.tokens), each.thinks_ns, each.says) for each in to_own} == {(1, (0.0,), ())}
    assert shown.client_floor is not None
    assert 20 <= shown.client_floor.answered == shown.client_floor.requests == len(to_own) <= 100


def floor_and_row(prompts: Path, server: StreamingServer) -> tuple[ClientFloor, Row]:
    found = raced(prompts, server, **HOW)
    [shown] = shown_by(found, server)
    assert shown.client_floor is not None
    return shown.client_floor, row_of(found, server)


@needs_httpx
def test_a_client_that_is_slow_to_send_is_found_and_its_row_is_not_ranked(
    prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = StreamClient._stream

    def slow(self: StreamClient, *asked: Any) -> Any:
        time.sleep(0.01)
        return quick(self, *asked)

    monkeypatch.setattr(StreamClient, "_stream", slow)
    with in_a_process(first_ms=2.0) as server:
        floor, row = floor_and_row(prompts, server)
    assert floor.first_token is not None
    assert floor.first_token.p50_ns >= 10e6
    assert codes(row) >= {"E_CLIENT_LIMIT"}
    assert row.place is None


@pytest.mark.slow
@needs_httpx
def test_a_client_that_is_slow_to_read_is_found_by_each_token(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowReader(EventReader):
        def feed(self, chunk: bytes) -> list[bytes]:
            time.sleep(0.004)
            return super().feed(chunk)

    monkeypatch.setattr(Completions, "reader", SlowReader)
    with in_a_process(first_ms=10.0, each_ms=1.0) as server:
        floor, row = floor_and_row(prompts, server)
    assert floor.per_token is not None
    assert floor.per_token.p50_ns > 4e6
    assert codes(row) >= {"E_CLIENT_LIMIT"}


@pytest.mark.slow
@needs_httpx
def test_a_queue_at_a_server_that_is_overloaded_is_not_the_clients(prompts: Path) -> None:
    with in_a_process(each_ms=3.0, slots=1) as server:  # 21 ms of an answer, at 200 a second
        found = raced(prompts, server, **{**HOW, "rate": 200.0})
    [floor] = [each.client_floor for each in shown_by(found, server)]
    row = row_of(found, server)
    assert row.latency_p50_ns is not None
    assert row.latency_p50_ns.value > 60e6
    assert floor is not None
    assert floor.whole_answer is not None
    assert floor.whole_answer.p50_ns < row.latency_p50_ns.value / 2


def floor_of(first_ms: float, whole_ms: float, answered: int = 20) -> ClientFloor:
    first, whole = (Percentiles(1e6 * each, 2e6 * each, 3e6 * each) for each in (first_ms, whole_ms))
    return ClientFloor(requests=20, answered=answered, first_token=first, per_token=None, whole_answer=whole)


def showing(floor: ClientFloor | None, first_ms: float, whole_ms: float, share: float = 0.5) -> ProcessResult:
    figures = StreamFigures(
        counts=Counts(requests=20, answered=20),
        tokens_per_s=1.0,
        requests_per_s=1.0,
        goodput_per_s=None,
        good_share=None,
        lateness_p99_ns=None,
        client_share=share,
    )
    found = ProcessResult(
        block=0, position=0, contestant="a", work_id="w", conditions="as-found", data_seed=0, caches="warm"
    )
    found.streams = StreamsFound(figures=figures, client_floor=floor)
    found.timings = {
        name: Timing(ms * 1e6, ms * 1e6, ms * 1e6, 20, 1, 0, "none", "stamped", 1.0)
        for name, ms in ((TIME_TO_FIRST_TOKEN, first_ms), ("wall_ns", whole_ms))
    }
    return found


@pytest.mark.parametrize(
    ("floor", "share", "is_limit"),
    [
        (floor_of(3.9, 5.0), 0.5, False),
        (floor_of(4.1, 5.0), 0.5, True),  # over a fifth of the 20 ms to a first token
        (floor_of(1.0, 19.9), 0.5, False),
        (floor_of(1.0, 20.1), 0.5, True),  # and of the 100 ms of an answer
        (floor_of(1.0, 5.0), 0.95, True),
        (floor_of(1.0, 5.0, answered=19), 0.5, True),
    ],
)
def test_a_row_is_the_clients_where_it_adds_more_than_a_fifth_or_has_no_core_left(
    floor: ClientFloor, share: float, is_limit: bool
) -> None:
    found = why_client_limits([showing(floor, 20.0, 100.0, share)])
    assert (found is not None) == is_limit
    assert found is None or found.code == "E_CLIENT_LIMIT"
    assert why_client_limits([showing(None, 20.0, 100.0, share)]) is None


def test_less_than_a_millisecond_is_no_limit() -> None:
    assert why_client_limits([showing(floor_of(0.9, 0.9), 1.2, 1.2)]) is None
    assert why_client_limits([showing(floor_of(0.9, 1.1), 1.2, 1.2)]) is not None


def test_one_bad_block_of_three_is_no_limit_and_two_are() -> None:
    good, bad = showing(floor_of(1.0, 5.0), 20.0, 100.0), showing(floor_of(9.0, 50.0), 20.0, 100.0, 0.95)
    assert why_client_limits([good, bad, good]) is None
    assert why_client_limits([bad, good, bad]) is not None


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (showing(floor_of(0.4, 0.4), 1.0, 1.0), []),
        (showing(floor_of(0.6, 0.6), 1.0, 10.0), ["first token"]),
        (showing(floor_of(1.2, 1.2), 1.0, 1.5), ["first token", "whole answer"]),  # below the client's own time
        (showing(None, 1e-3, 1.0), []),
        (showing(None, 1e-6, 1.0), ["first token"]),  # of a function: of a nanosecond, which stamps resolve at best
    ],
)
def test_a_figure_that_is_mostly_the_clients_has_a_warning(found: ProcessResult, named: list[str]) -> None:
    notices = figures_at_floor([found] * 3)
    assert [each.code for each in notices] == ["W_CLIENT_FLOOR"] * bool(named)
    for what in ("first token", "whole answer", "time per token"):
        assert (what in "".join(each.text for each in notices)) == (what in named)


@needs_httpx
def test_times_of_a_null_server_are_said_to_be_the_clients(prompts: Path) -> None:
    with known_server() as port:
        [row] = raced_by_name(prompts, f"http://127.0.0.1:{port}/8:model=m", **HOW, blocks=3).rows
    assert "W_CLIENT_FLOOR" in codes(row)


@pytest.mark.slow
@needs_httpx
def test_times_far_above_the_clients_are_not(prompts: Path) -> None:
    named = []
    for slower in (1, 4, 16):  # a busy machine makes the client itself slow
        with in_a_process(first_ms=60.0 * slower, each_ms=6.0 * slower) as server:
            found = raced(prompts, server, **{**HOW, "rate": 30.0})
        named.append("W_CLIENT_FLOOR" in codes(row_of(found, server)))
        if not named[-1]:
            break
    assert not named[-1]


def served(requests: int, took_s: float, client_share: float, tokens: int = 8) -> Served:
    """Of requests that came evenly, and were all answered."""
    due_ns = np.linspace(0, 1e9 * took_s, requests, endpoint=False)
    answer = Answer(came_ns=tuple(range(tokens)), arrived=(1,) * tokens, tokens=tokens, asked_tokens=tokens)
    return Served(
        from_ns=due_ns,
        first_ns=due_ns,
        last_ns=due_ns + 1e9 * took_s / requests,
        ended_ns=due_ns,
        lateness_ns=0 * due_ns,
        prompts=np.zeros(requests, np.int64),
        answers=(answer,) * requests,
        elapsed_s=took_s,
        client_share=client_share,
        uncertainty_ns=0.0,
        interrupted=False,
    )


@pytest.mark.parametrize(
    ("found", "requests", "longest_s"),
    [
        (served(10, 2.0, 0.004), 20, 0.2),  # 0.8 ms of the client for an answer
        (served(60, 12.0, 0.01), 60, 1.0),  # as slow, and longer
        (served(1000, 2.0, 0.5), 100, 0.21),  # no more often than it was asked
        (served(10, 100.0, 0.04), 20, 60.0),  # a client that needs 0.4 s for an answer
    ],
)
def test_what_it_adds_is_found_in_a_fraction_of_a_turn_at_no_lower_rate(
    found: Served, requests: int, longest_s: float
) -> None:
    count, rate_per_s = requests_for_floor(found)
    assert count == requests
    assert count / rate_per_s <= longest_s
    assert rate_per_s >= len(found.answers) / found.elapsed_s * 0.999
    of_an_answer_s = found.client_share * found.elapsed_s / len(found.answers)
    busiest = max(0.15, found.client_share)
    assert rate_per_s * of_an_answer_s <= busiest * 1.001  # at work no more than a little, or than in the load
