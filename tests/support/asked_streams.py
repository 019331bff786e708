"""A single request to the tests' own servers that stream, by HTTP or by gRPC."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.client_of_server import client_for
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import stream_server
from grpc_stream_server import GrpcStreamingServer
from stream_server import StreamingServer

NEEDS_GRPC = pytest.mark.skipif(find_spec("grpc") is None, reason="needs the extra grpc; `make test` installs it")
KINDS = [
    pytest.param(StreamingServer, id="http"),
    pytest.param(GrpcStreamingServer, id="grpc", marks=NEEDS_GRPC),
]
SECRET = "plain-words-that-no-pattern-knows"
TOKENS = 8


def asked_at(
    address: str, certificates: Certificates | None = None, *, times: int = 1, fields: Any = "forced"
) -> Answer:
    """Ask so many times over one connection, and return the last answer."""
    named = stream_server(contestant_named(address), chat=False, remote=False)
    client = client_for(named, (certificates or Certificates()).context(), TOKENS)
    try:
        raw = [client.ask(named.body(Prompt(prompt="Hi"), TOKENS, fields)) for _ in range(times)]
        assert all(each.ended_ns >= each.began_ns for each in raw)
        return answer_in(raw[-1], named)
    finally:
        client.close()


def asked(server: Any, options: str = "", certificates: Certificates | None = None, **how: Any) -> Answer:
    return asked_at(server.at(options), certificates, **how)


def failure_of(answer: Answer) -> str:
    """Return its code; it is one line that can be printed."""
    assert answer.failure is not None
    assert answer.failure.text.isprintable()
    assert len(answer.failure.text) < 330
    return answer.failure.code
