"""A server by gRPC is asked like one by HTTP: what it does wrong is one line and one code, and its times are true."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import certificate_of
from fairlap.errors import InvalidRequest
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.grpc_client import GrpcStreamClient
from fairlap.scenarios.streams.floor.known_server import known_server
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import stream_server
from grpc_stream_server import GrpcStreamingServer
from stream_races import (
    codes,
    counts_of,
    file_of_prompts,
    raced,
    raced_by_name,
    row_of,
    shown_by,
    without_client_floor,
)
from stream_server import StreamingServer

pytest.importorskip("grpc", reason="needs the extra grpc; `make test` installs it and runs this")
pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")

SECRET = "plain-words-that-no-pattern-knows"
TOKENS = 8


def asked_at(
    address: str, certificates: Certificates | None = None, *, times: int = 1, fields: Any = "forced"
) -> Answer:
    """Ask so many times over one connection, and return the last answer."""
    named = stream_server(contestant_named(address), chat=False, remote=False)
    client = GrpcStreamClient(named, (certificates or Certificates()).context(), TOKENS)
    try:
        raw = [client.ask(named.body(Prompt(prompt="Hi"), TOKENS, fields)) for _ in range(times)]
        assert all(each.ended_ns >= each.began_ns for each in raw)
        return answer_in(raw[-1], named)
    finally:
        client.close()


def asked(
    server: GrpcStreamingServer, options: str = "", certificates: Certificates | None = None, **how: Any
) -> Answer:
    return asked_at(server.at(options), certificates, **how)


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


FAULTS = {
    "RESOURCE_EXHAUSTED": ("E_STREAM_BUSY", "RESOURCE_EXHAUSTED"),
    "UNAVAILABLE": ("E_STREAM_BUSY", "UNAVAILABLE"),
    "INTERNAL": ("E_STREAM_STATUS", "so it"),
    "NOT_FOUND": ("E_STREAM_STATUS", "NOT_FOUND"),
    "error": ("E_STREAM_EVENT", "out of memory"),
    "rubbish": ("E_STREAM_EVENT", ""),
    "two megabytes": ("E_STREAM_EVENT", "1,048,576"),
    "cut": ("E_STREAM_CUT", "after 4 messages"),
    "gone": ("E_STREAM_CUT", "after 4 messages"),
    "unfinished": ("E_STREAM_CUT", "4 events"),
    "tokens for ever": ("E_STREAM_ENDLESS", ""),
    "silent": ("E_STREAM_TIMEOUT", "0.3 s"),
    "stalls": ("E_STREAM_TIMEOUT", "0.3 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_way_to_go_wrong_has_a_code_and_one_line(fault: str) -> None:
    code, shown = FAULTS[fault]
    timeout = "300ms" if code == "E_STREAM_TIMEOUT" else "10s"
    with GrpcStreamingServer(fault=fault) as server:
        failure = asked(server, f":timeout={timeout}").failure
    assert failure is not None
    assert (failure.code, failure.text.isprintable(), len(failure.text) < 330) == (code, True, True)
    assert shown in failure.text


@pytest.mark.parametrize("fault", ["UNAVAILABLE", "cut", "two megabytes", "tokens for ever"])
def test_the_next_request_is_answered(fault: str) -> None:
    with GrpcStreamingServer(fault=fault, fault_every=2) as server:
        assert asked(server, times=2).failure is None


def test_a_server_that_is_not_there_or_speaks_something_else_has_a_code() -> None:
    with GrpcStreamingServer() as server:
        pass
    failure = asked(server).failure
    assert failure is not None
    assert failure.code == "E_SERVER"
    with StreamingServer() as by_http:
        failure = asked_at(f"grpc://127.0.0.1:{by_http.port}:model=m:timeout=5s").failure
    assert failure is not None
    assert failure.code == "E_SERVER"


def test_a_server_that_comes_back_is_asked_again_at_once() -> None:
    """gRPC itself would wait a second before it connects again."""
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
        assert time.monotonic() - began_s < 0.5
        assert len(server.requests) == 1
    client.close()


def test_a_credential_reaches_its_server_and_is_hidden_in_what_the_server_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    with GrpcStreamingServer(key=SECRET) as server:
        assert asked(server, ":key_from=KEY_OF_SERVER").failure is None
        monkeypatch.setenv("KEY_OF_SERVER", f"{SECRET}-wrong")
        failure = asked(server, ":key_from=KEY_OF_SERVER").failure
    assert failure is not None
    assert failure.code == "E_STREAM_STATUS"
    assert SECRET not in failure.text
    assert "wrong key" in failure.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_of(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


def test_a_certificate_is_verified_unless_it_is_asked_not_to(certificate: Path) -> None:
    with GrpcStreamingServer(certificate=certificate) as server:
        refused = asked(server).failure
        assert refused is not None
        assert refused.code == "E_CERTIFICATE"
        assert not server.requests
        assert asked(server, certificates=Certificates(f"{certificate}.crt")).failure is None
        assert asked(server, certificates=Certificates(verified=False)).failure is None


@pytest.mark.parametrize("names", ["DNS:somewhere.else", "DNS:*.else"])
def test_a_certificate_of_another_name_is_refused_unless_none_is_verified(names: str, tmp_path: Path) -> None:
    certificate = certificate_of(tmp_path, names)
    with GrpcStreamingServer(certificate=certificate) as server:
        failure = asked(server, certificates=Certificates(f"{certificate}.crt")).failure
        assert failure is not None
        assert failure.code == "E_CERTIFICATE"
        assert not server.requests
        assert asked(server, certificates=Certificates(verified=False)).failure is None


def test_a_server_without_tls_is_a_failure_of_certificates() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(65_536)

        answering = threading.Thread(target=answer)
        answering.start()
        failure = asked_at(f"grpcs://127.0.0.1:{plain.getsockname()[1]}:model=m").failure
        answering.join()
    assert failure is not None
    assert failure.code == "E_CERTIFICATE"


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


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return file_of_prompts(tmp_path)


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_each_token_is_stamped_soon_after_the_server_wrote_it() -> None:
    """The quickest quarter of tokens: others wait for a core where other programs use it."""
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
    assert np.quantile(late_ns, 0.25) < 2e6


def test_a_server_by_grpc_races_one_by_http_and_gets_the_same_prompts(
    prompts: Path, servers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_client_floor(monkeypatch)
    fast = servers.enter_context(GrpcStreamingServer(first_ms=4.0))
    slow = servers.enter_context(StreamingServer(first_ms=200.0))
    found = raced_by_name(prompts, slow.at(), fast.at(), blocks=6, rate=50.0, trial=0.4)
    assert [row.contestant for row in found.rows] == [fast.at(), slow.at()]
    assert found.rows[1].verdict == "slower"
    settings = found.rows[0].settings
    assert [settings[name] for name in ("api", "length", "certificates")] == ["kserve-grpc", "forced", "none, by grpc"]
    [count] = {counts_of(found, server).requests for server in (fast, slow)}
    by_http = sorted(body["prompt"] for _, _, body in slow.requests[-count:])
    assert sorted(each["text"] for each in fast.requests[-count:]) == by_http


def test_requests_that_fail_under_load_are_counted_by_code_and_the_race_goes_on(
    prompts: Path, servers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_client_floor(monkeypatch)
    honest = servers.enter_context(GrpcStreamingServer())
    faults = "UNAVAILABLE,INTERNAL,rubbish,cut,unfinished,silent"
    other = servers.enter_context(GrpcStreamingServer(fault=faults, fault_from=30, fault_every=2))
    found = raced(prompts, other, honest, timeout="1s", trial=0.2)
    counts = counts_of(found, other)
    assert {*counts.failed} == {f"E_STREAM_{kind}" for kind in ("BUSY", "STATUS", "EVENT", "CUT", "TIMEOUT")}
    assert sum(counts.failed.values()) == counts.requests - counts.answered
    assert codes(row_of(found, other)) >= {"E_DROPPED_REQUESTS"}
    of_honest = counts_of(found, honest)
    assert of_honest.answered == of_honest.requests > 0


@pytest.mark.parametrize("like", ["triton", "mlserver"])
def test_inputs_that_a_server_refuses_are_left_out(
    like: str, prompts: Path, servers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_client_floor(monkeypatch)
    server = servers.enter_context(GrpcStreamingServer(like=like, refused=("sampling_parameters",), counts=False))
    row = row_of(raced_by_name(prompts, server.at(), rate=100.0), server)
    assert (row.outcome, row.settings["length"], row.settings["tokens counted by"]) == (
        "finished",
        "not forced",
        "events",
    )
    assert server.requests[-1]["inputs"] == ["text_input"]
    assert server.requests[-1]["tokens"] == TOKENS


def test_what_the_client_adds_by_grpc_is_measured_by_grpc(prompts: Path, servers: ExitStack) -> None:
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
