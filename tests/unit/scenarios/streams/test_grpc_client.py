"""A server by gRPC is asked like one by HTTP: what it does wrong is one line and one code, and its times are true."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from asked_streams import SECRET, TOKENS, asked, asked_at, failure_of
from certificates import certificate_of
from fairlap.errors import InvalidRequest
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.grpc_client import GrpcStreamClient
from fairlap.scenarios.streams.floor.known_server import known_server
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import stream_server
from grpc_stream_server import GrpcStreamingServer
from machine_marks import needs
from stream_races import counts_of, raced_by_name, row_of, shown_by, with_client_floor
from stream_server import StreamingServer

needs("grpc", reason="needs the extra grpc; `make test` installs it and runs this")
needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("like", ["triton", "mlserver"])
def test_an_answer_is_read_whole_however_it_is_wrapped(like: str, raw: bool) -> None:
    with GrpcStreamingServer(like=like, raw=raw) as server:
        found = asked(server, "/versions/2")
        [request] = server.requests
    assert (found.failure, found.tokens, found.counted_by) == (None, TOKENS, "events' usage")
    assert len(found.text.split()) == TOKENS
    assert (request["model"], request["version"], request["text"]) == ("m", "2", "Hi")
    assert request["sampling"] == {"max_tokens": TOKENS, "min_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
    assert {"max_tokens", "temperature"} <= {*request["parameters"]}
    assert "authorization" not in request["metadata"]


@pytest.mark.parametrize("fields", ["counted", "plain", "inputs"])
def test_each_way_to_ask_for_a_length_is_understood_by_a_server_of_that_kind(fields: str) -> None:
    with GrpcStreamingServer(counts=False) as server:
        found = asked(server, fields=fields)
    assert (found.failure, found.tokens, found.counted_by) == (None, TOKENS, "events")


def test_a_server_that_speaks_something_else_has_a_code() -> None:
    with StreamingServer() as by_http:
        found = asked_at(f"grpc://127.0.0.1:{by_http.port}:model=m:timeout=5s")
    assert failure_of(found) == "E_SERVER"


def test_a_server_that_comes_back_is_asked_again_at_once() -> None:
    """gRPC itself would wait a second before it connects again. A busy machine only delays: the best of several."""
    took_s = [asked_again_s()]
    while min(took_s) >= 0.5 and len(took_s) < 10:
        took_s.append(asked_again_s())
    assert min(took_s) < 0.5


def asked_again_s() -> float:
    """Return how long it takes from when a server is back to its first answer."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    named = stream_server(contestant_named(f"grpc://127.0.0.1:{port}:model=m"), chat=False, remote=False)
    client = GrpcStreamClient(named, Certificates().context(), TOKENS)
    assert not client.connect()
    body = named.body(Prompt(prompt="Hi"), TOKENS, "forced")
    assert client.ask(body).failure is not None
    with GrpcStreamingServer(port=port) as server:
        began_s = time.monotonic()
        assert client.connect()
        assert client.ask(body).failure is None
        took_s = time.monotonic() - began_s
        assert len(server.requests) == 1
    client.close()
    return took_s


@pytest.mark.parametrize("names", ["DNS:somewhere.else", "DNS:*.else"])
def test_a_certificate_of_another_name_is_refused_unless_none_is_verified(names: str, tmp_path: Path) -> None:
    certificate = certificate_of(tmp_path, names)
    with GrpcStreamingServer(certificate=certificate) as server:
        failure = asked(server, certificates=Certificates(f"{certificate}.crt")).failure
        assert failure is not None
        assert failure.code == "E_CERTIFICATE"
        assert not server.requests
        assert asked(server, certificates=Certificates(verified=False)).failure is None


@pytest.mark.parametrize(
    "address",
    [
        "grpc://127.0.0.1:model=m",
        "grpc://127.0.0.1:8001",
        "grpc://127.0.0.1:8001/v2:model=m",
        "grpc://127.0.0.1:8001:model=m:api=tgi",
        "grpc://192.0.2.1:8001:model=m",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_before_a_packet_leaves(address: str) -> None:
    with pytest.raises(InvalidRequest):
        stream_server(contestant_named(address), chat=False, remote=False)
    with pytest.raises(InvalidRequest):
        stream_server(contestant_named("grpc://127.0.0.1:8001:model=m"), chat=True, remote=False)


def test_a_credential_is_not_sent_unencrypted_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    at = "192.0.2.1:8001:model=m:key_from=KEY_OF_SERVER"
    with pytest.raises(InvalidRequest):
        stream_server(contestant_named(f"grpc://{at}"), chat=False, remote=True)
    assert stream_server(contestant_named(f"grpcs://{at}"), chat=False, remote=True).key_from


def test_each_token_is_stamped_soon_after_the_server_wrote_it() -> None:
    """The quickest tokens: others wait for a core where other programs use it."""
    with GrpcStreamingServer(first_ms=10.0, each_ms=3.0) as server:
        named = stream_server(contestant_named(server.at()), chat=False, remote=False)
        client = GrpcStreamClient(named, Certificates().context(), TOKENS)
        assert client.connect()
        body = named.body(Prompt(prompt="Hi"), TOKENS, "forced")
        answers = [answer_in(client.ask(body), named) for _ in range(10)]
        client.close()
        wrote_ns = np.array([each.tokens_ns for each in server.truths])
    late_ns = np.array([each.came_ns for each in answers]) - wrote_ns
    assert late_ns.shape == (10, TOKENS)
    assert late_ns.min() > 0
    assert np.quantile(late_ns, 0.05) < 2e6


def test_a_server_by_grpc_races_one_by_http_and_gets_the_same_prompts(prompts: Path, servers: ExitStack) -> None:
    fast = servers.enter_context(GrpcStreamingServer(first_ms=4.0))
    slow = servers.enter_context(StreamingServer(first_ms=100.0))
    found = raced_by_name(prompts, slow.at(), fast.at(), blocks=6, rate=50.0, trial=0.4)
    assert [row.contestant for row in found.rows] == [fast.at(), slow.at()]
    assert found.rows[1].verdict == "slower"
    settings = found.rows[0].settings
    assert [settings[name] for name in ("api", "length", "certificates")] == ["kserve-grpc", "forced", "none, by grpc"]
    [count] = {counts_of(found, server).requests for server in (fast, slow)}
    by_http = sorted(body["prompt"] for _, _, body in slow.requests[-count:])
    assert sorted(each["text"] for each in fast.requests[-count:]) == by_http


@pytest.mark.parametrize("like", ["triton", "mlserver"])
def test_inputs_that_a_server_refuses_are_left_out(like: str, prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(GrpcStreamingServer(like=like, refused=("sampling_parameters",), counts=False))
    row = row_of(raced_by_name(prompts, server.at(), rate=100.0), server)
    assert (row.outcome, row.settings["length"], row.settings["tokens counted by"]) == (
        "finished",
        "not forced",
        "events",
    )
    assert server.requests[-1]["inputs"] == ["text_input"]
    assert server.requests[-1]["tokens"] == TOKENS


def test_what_the_client_adds_by_grpc_is_measured_by_grpc(
    prompts: Path, servers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_client_floor(monkeypatch)
    server = servers.enter_context(GrpcStreamingServer(first_ms=10.0, each_ms=0.5))
    found = raced_by_name(prompts, server.at(), rate=50.0)
    [shown] = shown_by(found, server)
    floor = shown.client_floor
    assert floor is not None
    assert 20 <= floor.answered == floor.requests <= 100
    assert floor.first_token is not None
    assert 0 < floor.first_token.p50_ns <= floor.first_token.p90_ns


def test_nothing_is_left_of_the_null_server_by_grpc() -> None:
    with known_server(by_grpc=True) as port:
        found = asked_at(f"grpc://127.0.0.1:{port}:model=3")
        assert (found.failure, found.tokens, len(found.text.split())) == (None, 3, 4)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
