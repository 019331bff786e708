"""What the client adds to times is measured on a server of known times, and a row that it limits is not ranked."""

from __future__ import annotations

import json
import socket
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.request.names import Contestants
from fairlap.scenarios.streams.asked import Bounds, streams_asked
from fairlap.scenarios.streams.client import StreamClient
from fairlap.scenarios.streams.document import document_of
from fairlap.scenarios.streams.events import EventReader
from fairlap.scenarios.streams.figures import Percentiles, figures_of
from fairlap.scenarios.streams.floor.client_floor import ClientFloor, why_client_limits
from fairlap.scenarios.streams.floor.known_server import known_server
from fairlap.scenarios.streams.protocols.openai import Completions
from fairlap.scenarios.streams.race import StreamRace
from fairlap.scenarios.streams.result import StreamRow, StreamsResult
from stream_server import StreamingServer, in_a_process

TOKENS = 6
needs_httpx = pytest.mark.usefixtures("httpx")


@pytest.fixture
def httpx() -> None:
    pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(f'{{"prompt": "number {place}"}}\n' for place in range(20)))
    return path


def raced(prompts: Path, server: StreamingServer, **asked: Any) -> StreamsResult:
    how = {"rate": 100.0, "trial": 0.2, "blocks": 1, "seed": 1, **asked}
    return StreamRace(streams_asked(prompts, Contestants(server.at()), tokens=TOKENS, **how)).run()


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


@needs_httpx
@pytest.mark.parametrize("how", [{}, {"rate": None, "concurrency": 2}])
def test_a_row_has_what_the_client_adds(how: dict[str, Any], prompts: Path) -> None:
    with in_a_process(first_ms=8.0, each_ms=0.5) as server:
        found = raced(prompts, server, **how)
    [row] = document_of(found).rows
    assert row.client_floor is not None
    assert row.figures is not None
    assert row.client_floor.answered == row.client_floor.requests > 0
    for added in (row.client_floor.first_token, row.client_floor.per_token, row.client_floor.whole_answer):
        assert added is not None
        assert 0 < added.p50_ns <= added.p90_ns
    assert "client adds" in found.text


def planted(row: StreamRow, least_ns: float) -> None:
    assert row.client_floor is not None
    added = row.client_floor.first_token
    assert added is not None
    assert added.p50_ns >= least_ns
    assert row.why_not is not None
    assert row.why_not.code == "E_CLIENT_LIMIT"


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
        [row] = raced(prompts, server).rows
    planted(row, 10e6)


@needs_httpx
def test_a_client_that_is_slow_to_read_is_found_by_each_token(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowReader(EventReader):
        def feed(self, chunk: bytes) -> list[bytes]:
            time.sleep(0.004)
            return super().feed(chunk)

    monkeypatch.setattr(Completions, "reader", SlowReader)
    with in_a_process(first_ms=10.0, each_ms=1.0) as server:
        [row] = raced(prompts, server).rows
    assert row.client_floor is not None
    assert row.client_floor.per_token is not None
    assert row.client_floor.per_token.p50_ns > 4e6
    assert row.why_not is not None
    assert row.why_not.code == "E_CLIENT_LIMIT"


@needs_httpx
def test_a_queue_at_a_server_that_is_overloaded_is_not_the_clients(prompts: Path) -> None:
    with in_a_process(each_ms=3.0, slots=1) as server:  # 15 ms of an answer, at 200 a second
        [row] = raced(prompts, server, rate=200.0).rows
    assert row.figures is not None
    assert row.figures.end_to_end is not None
    assert row.figures.end_to_end.p50_ns > 60e6
    assert row.client_floor is not None
    assert row.client_floor.whole_answer is not None
    assert row.client_floor.whole_answer.p50_ns < row.figures.end_to_end.p50_ns / 2


def floor_of(first_ms: float, whole_ms: float, answered: int = 20) -> ClientFloor:
    first, whole = (Percentiles(1e6 * each, 2e6 * each, 3e6 * each) for each in (first_ms, whole_ms))
    return ClientFloor(requests=20, answered=answered, first_token=first, per_token=None, whole_answer=whole)


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
    figures = msgspec.structs.replace(
        figures_of([], TOKENS, Bounds()),
        first_token=Percentiles(20e6, 30e6, 40e6),
        end_to_end=Percentiles(100e6, 110e6, 120e6),
        client_share=share,
    )
    found = why_client_limits(floor, figures)
    assert (found is not None) == is_limit
    assert found is None or found.code == "E_CLIENT_LIMIT"
    assert why_client_limits(None, figures) is None


def test_less_than_a_millisecond_is_no_limit() -> None:
    quick = Percentiles(1.2e6, 2e6, 3e6)
    figures = msgspec.structs.replace(figures_of([], TOKENS, Bounds()), first_token=quick, end_to_end=quick)
    assert why_client_limits(floor_of(0.9, 0.9), figures) is None
    assert why_client_limits(floor_of(0.9, 1.1), figures) is not None
