"""What a server does wrong is one line and one code, and the client goes on with the next request."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from asked_streams import KINDS, NEEDS_GRPC, SECRET, TOKENS, asked, asked_at, failure_of
from certificates import certificate_of
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Certificates, StreamClient
from fairlap.scenarios.streams.servers import stream_server
from grpc_stream_server import GrpcStreamingServer
from machine_marks import needs
from stream_races import raced, row_of
from stream_server import StreamingServer

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")


@pytest.mark.parametrize("behaviour", [{}, {"split": True, "comments": True}, {"tokens_in_events": (1, 2, 3)}])
def test_an_answer_is_read_whole_however_it_comes(behaviour: dict[str, Any]) -> None:
    with StreamingServer(**behaviour) as server:
        found = asked(server)
        [(path, headers, body)] = server.requests
    assert (found.failure, found.tokens, found.counted_by, found.finish) == (None, TOKENS, "events' usage", "length")
    assert sum(found.arrived) == TOKENS
    assert len(found.text.split()) == TOKENS
    assert path == "/v1/completions"
    assert (body["max_tokens"], body["min_tokens"], body["ignore_eos"], body["temperature"]) == (
        TOKENS,
        TOKENS,
        True,
        0,
    )
    assert "authorization" not in headers


FAULTS = {
    "429": ("E_STREAM_BUSY", "429"),
    "500": ("E_STREAM_STATUS", "out of memory"),
    "redirects": ("E_STREAM_REDIRECT", "192.0.2.1"),
    "html": ("E_STREAM_EVENT", "text/html"),
    "rubbish": ("E_STREAM_EVENT", ""),
    "error": ("E_STREAM_EVENT", "out of memory"),
    "ten megabytes": ("E_STREAM_EVENT", "1,048,576"),
    "no http": ("E_STREAM_CUT", ""),
    "cut": ("E_STREAM_CUT", "after 4 events"),
    "reset": ("E_STREAM_CUT", "after 4 events"),
    "unfinished": ("E_STREAM_CUT", ""),
    "tokens for ever": ("E_STREAM_ENDLESS", ""),
    "comments for ever": ("E_STREAM_TIMEOUT", "0.3 s"),
    "silent": ("E_STREAM_TIMEOUT", "0.3 s"),
    "stalls": ("E_STREAM_TIMEOUT", "0.3 s"),
}
GRPC_FAULTS = {
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


def of_both(by_http: Iterable[Any], by_grpc: Iterable[Any]) -> list[Any]:
    """Combine each kind of server with what goes wrong there."""
    named: list[tuple[str, Any, Any]] = [("http", StreamingServer, each) for each in by_http]
    named += [("grpc", GrpcStreamingServer, each) for each in by_grpc]
    return [
        pytest.param(
            kind,
            each,
            id=f"{name} {each if isinstance(each, str) else each[0]}",
            marks=[NEEDS_GRPC] if name == "grpc" else [],
        )
        for name, kind, each in named
    ]


@pytest.mark.parametrize(("kind", "fault"), of_both(FAULTS.items(), GRPC_FAULTS.items()))
def test_each_way_to_go_wrong_has_a_code_and_one_line(kind: Any, fault: tuple[str, tuple[str, str]]) -> None:
    name, (code, shown) = fault
    timeout = "300ms" if code == "E_STREAM_TIMEOUT" else "10s"
    with kind(fault=name, **({"usage": "end"} if kind is StreamingServer else {})) as server:
        answer = asked(server, f":timeout={timeout}")
    assert failure_of(answer) == code
    assert answer.failure is not None
    assert shown in answer.failure.text


@pytest.mark.parametrize(
    ("kind", "fault"),
    of_both(
        ["429", "cut", "ten megabytes", "tokens for ever"], ["UNAVAILABLE", "cut", "two megabytes", "tokens for ever"]
    ),
)
def test_the_next_request_is_answered(kind: Any, fault: str) -> None:
    with kind(fault=fault, fault_every=2) as server:
        assert asked(server, times=2).failure is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_not_there_has_a_code(kind: Any) -> None:
    with kind() as server:
        pass
    assert failure_of(asked(server)) == "E_SERVER"


@pytest.mark.parametrize("kind", KINDS)
def test_a_credential_reaches_its_server_and_is_hidden_in_what_the_server_repeats(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", SECRET)
    with kind(key=SECRET) as server:
        assert asked(server, ":key_from=KEY_OF_SERVER").failure is None
        monkeypatch.setenv("KEY_OF_SERVER", f"{SECRET}-wrong")
        failure = asked(server, ":key_from=KEY_OF_SERVER").failure
    assert failure is not None
    assert failure.code == "E_STREAM_STATUS"
    assert SECRET not in failure.text
    assert "wrong key" in failure.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one for 127.0.0.1 that no system trusts, with its key in the same file."""
    return certificate_of(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_verified_unless_it_is_asked_not_to(kind: Any, certificate: Path) -> None:
    with kind(certificate=certificate) as server:
        refused = asked(server).failure
        assert refused is not None
        assert refused.code == "E_CERTIFICATE"
        assert not server.requests
        assert asked(server, certificates=Certificates(f"{certificate}.crt")).failure is None
        assert asked(server, certificates=Certificates(verified=False)).failure is None


def test_certificates_are_read_once_for_all_connections(certificate: Path) -> None:
    asked_for = [Certificates(), Certificates(verified=False), Certificates(f"{certificate}.crt")]
    read = [each.context() for each in asked_for]
    assert len(set(map(id, read))) == len(read)
    assert [each.context() is found for each, found in zip(asked_for, read, strict=True)] == [True] * 3


def test_a_certificate_of_another_name_is_refused(certificate: Path) -> None:
    """It is trusted, and of 127.0.0.1."""
    with StreamingServer(certificate=certificate) as server:
        named = stream_server(contestant_named(f"https://localhost:{server.port}/v1:model=m"), chat=False, remote=False)
        client = StreamClient(named, Certificates(f"{certificate}.crt").context(), TOKENS)
        failure = client.ask(b"{}").failure
        client.close()
        assert not server.requests
    assert failure is not None
    assert failure.code == "E_CERTIFICATE"


@pytest.mark.parametrize(("how", "shown"), [("insecure", "not verified"), ("ca", "verified with")])
def test_a_row_says_how_certificates_were_verified(how: str, shown: str, certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Hi"}')
    options: dict[str, Any] = {"insecure": True} if how == "insecure" else {"ca": f"{certificate}.crt"}
    with StreamingServer(certificate=certificate) as server:
        row = row_of(raced(tmp_path / "prompts.jsonl", server, rate=None, concurrency=1, trial=0.01, **options), server)
    assert row.settings["certificates"].startswith(shown)
    assert row.judged is not None


@pytest.mark.parametrize("scheme", ["https", pytest.param("grpcs", marks=NEEDS_GRPC)])
def test_a_server_without_tls_is_a_failure_of_certificates(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(65_536)

        answering = threading.Thread(target=answer)
        answering.start()
        path = "/v1" if scheme == "https" else ""
        found = asked_at(f"{scheme}://127.0.0.1:{plain.getsockname()[1]}{path}:model=m")
        answering.join()
    assert failure_of(found) == "E_CERTIFICATE"


def answer_in_http_2(listening: socket.socket, certificate: Path, events: list[str]) -> None:
    """Serve one connection, and each of its requests with these events."""
    connection_of = pytest.importorskip("h2.connection").H2Connection
    configuration = pytest.importorskip("h2.config").H2Configuration(client_side=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    plain, _ = listening.accept()
    with context.wrap_socket(plain, server_side=True) as stream:
        connection = connection_of(configuration)
        connection.initiate_connection()
        while data := stream.recv(65_536):
            for event in connection.receive_data(data):
                if type(event).__name__ == "StreamEnded":
                    head = [(":status", "200"), ("content-type", "text/event-stream")]
                    connection.send_headers(event.stream_id, head)
                    for each in events:
                        connection.send_data(event.stream_id, f"data: {each}\n\n".encode())
                    connection.end_stream(event.stream_id)
            stream.sendall(connection.data_to_send())


def test_a_server_that_offers_http_2_is_spoken_to_in_it(certificate: Path) -> None:
    events = ['{"choices": [{"text": "a"}]}', '{"choices": [{"text": "b", "finish_reason": "length"}]}', "[DONE]"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=answer_in_http_2, args=(listening, certificate, events))
        answering.start()
        address = f"https://127.0.0.1:{listening.getsockname()[1]}/v1:model=m:timeout=5s"
        named = stream_server(contestant_named(address), chat=False, remote=False)
        client = StreamClient(named, Certificates(f"{certificate}.crt").context(), TOKENS)
        assert client.connect()
        found = [answer_in(client.ask(b"{}"), named) for _ in range(2)]
        client.close()
        answering.join()
    assert client.http_version == "HTTP/2"
    assert [(each.failure, each.text, each.tokens) for each in found] == 2 * [(None, "ab", 2)]


def test_a_stall_costs_no_more_than_its_time() -> None:
    began_s = time.monotonic()
    with StreamingServer(fault="stalls") as server:
        asked(server, ":timeout=200ms")
    assert time.monotonic() - began_s < 20  # it would stall for ever
