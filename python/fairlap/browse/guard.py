"""What every request passes first: the host it names, its method and its token; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from fastapi.responses import Response

from fairlap.machine.serving.guard import Door, Request
from fairlap.machine.serving.guard import Guard as AnyGuard
from fairlap.printed_document import error_document

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fairlap.machine.serving.connections import Connections

API = "/api/"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'"
_NOT_FRAMED = "; frame-ancestors 'none'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_MOST_SHOWN = 300
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _USER = 1, 2, 7  # columns


def refusal(path: str, status: int, code: str, message: str) -> Response:
    """In one line; the API's is the object that the command line prints with --json."""
    line = " ".join(message.split())
    line = line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."
    if path.startswith(API):
        document = msgspec.json.encode(error_document(code, line))
        return Response(document + b"\n", status, media_type="application/json")
    text = f"fairlap: {line} [{code}]\n".encode(errors="replace")
    return Response(text, status, media_type="text/plain; charset=utf-8")


class Guard:
    """That of all servers, as an application around another, which tells ``connections`` what each is about."""

    def __init__(
        self,
        inside: ASGIApp,
        names: Collection[str] = (),
        door: Door | None = None,
        connections: Connections | None = None,
    ) -> None:
        """``names`` are hosts that a request may name besides IP addresses and localhost."""
        self._inside = inside
        self._for_owner_alone = door is None
        self._guard = AnyGuard(names, door)
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _guarded(message.get("headers", []))
            await send(message)

        answer = self._refusal(scope) or self._inside
        if self._connections is None:
            await answer(scope, receive, send_guarded)
            return
        client = tuple(scope["client"])
        self._connections.asked(client)
        try:
            await answer(scope, receive, send_guarded)
        finally:
            self._connections.waits(client)

    def _refusal(self, scope: Scope) -> Response | None:
        if self._for_owner_alone and _is_of_another_user(scope):
            why = "these runs are another user's; ask for a token, which FAIRLAP_SERVE_TOKEN gives the server"
            return refusal(scope["path"], 403, "E_SERVE_TOKEN", why)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        query = scope["query_string"].decode("latin-1")
        stopped = self._guard.stopped(Request(scope["method"], scope["path"], query, headers))
        if stopped is None:
            return None
        if not stopped.code:
            return Response(b"", stopped.status, stopped.headers)
        refused = refusal(scope["path"], stopped.status, stopped.code, stopped.message)
        refused.headers.update(stopped.headers)
        return refused


def _is_of_another_user(scope: Scope) -> bool:
    """Tell whether a process of this machine asks that is neither of the server's user nor of root."""
    client, server = scope["client"], scope["server"]
    try:
        user = _user_of_peer((client[0], client[1]), server[1])
    except (TypeError, ValueError):  # not a connection of TCP
        return False
    return user not in (None, 0, os.geteuid())


def _user_of_peer(peer: tuple[str, int], server_port: int) -> int | None:
    """Find the user of a peer on this machine.

    None for another machine, and where the kernel does not list its sockets as Linux does.
    """
    address = ipaddress.ip_address(peer[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if not (mapped or address).is_loopback:
        return None
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, lines):
            if _port(columns[_LOCAL]) == peer[1] and _port(columns[_REMOTE]) == server_port:
                return int(columns[_USER])
    return None


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Keep a page's policy for its own scripts, and give everything else one that allows none."""
    policies = [value for name, value in headers if name == b"content-security-policy"] or [POLICY.encode()]
    ours = {**_HEADERS, "content-security-policy": policies[0].decode() + _NOT_FRAMED}
    kept = [(name, value) for name, value in headers if name.decode() not in ours]
    return kept + [(name.encode(), value.encode()) for name, value in ours.items()]
