"""The null servers, by HTTP and by gRPC, each as a process, and a load on one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median_low

from fairlap.errors import NotAvailable, reason_of
from fairlap.machine.programs.orphans import in_own_session
from fairlap.request.fields.server_address import ServerAddress
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.floor import null_server
from fairlap.scenarios.streams.floor.client_floor import client_floor
from fairlap.scenarios.streams.issue import Served, Times
from fairlap.scenarios.streams.servers import Api, StreamServer
from fairlap.scenarios.streams.streams_found import ClientFloor
from fairlap.scenarios.streams.workload.sessions import Session

_BY_HTTP = (sys.executable, "-I", "-S", str(Path(null_server.__file__)))
_BY_GRPC = (sys.executable, "-P", "-m", f"{__package__}.null_grpc_server")


@contextmanager
def known_server(*, by_grpc: bool = False) -> Iterator[int]:
    """Run one in a process of its own, and return its port."""
    command = _BY_GRPC if by_grpc else _BY_HTTP
    try:
        process = in_own_session(  # or it is taken for an orphan when a server that fairlap started has ended
            list(command), guarded=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise NotAvailable(f"the server that shows what the client adds cannot run: {reason_of(error)}") from None
    with process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline()
            if not port:
                raise NotAvailable("the server that shows what the client adds ended at its start")
            yield int(port)
        finally:
            process.kill()


def client_against(
    port: int, contestant: Contestant, served: Served, asked: StreamsAsked, due_ns: Times, connections: int, seed: int
) -> ClientFloor:
    """Load it with first prompts of a contestant, and with as many pieces in an answer as that one's have."""
    known = Contestant(
        server_known(contestant.server, port, pieces_of(served)), replace(contestant.found, fields="forced")
    )
    try:
        return client_floor(known.offer(asked, requests_of(asked, len(due_ns), seed), due_ns, connections))
    finally:
        known.close()


def pieces_of(served: Served) -> int:
    return median_low(len(answer.came_ns) for answer in served.answers if answer.failure is None)


def requests_of(asked: StreamsAsked, count: int, seed: int) -> list[Session]:
    """Draw first prompts: nobody thinks or converses here."""
    drawn = asked.source.sessions(count, seed)
    return [replace(each, tokens=each.tokens[:1], thinks_ns=(0.0,), says=()) for each in drawn]


def server_known(server: StreamServer, port: int, pieces: int) -> StreamServer:
    """Return the null server that is asked in place of this one."""
    by_grpc = server.is_by_grpc
    by_http: Api = "chat" if server.protocol.takes_chats else "completions"
    return StreamServer(
        name=f"what the client adds to {server.name}",
        address=ServerAddress("127.0.0.1", port, f"/{pieces}", "grpc" if by_grpc else "http"),
        model=str(pieces) if by_grpc else server.model,
        api="kserve-grpc" if by_grpc else by_http,
        key_from="",
        timeout_s=server.timeout_s,
    )
