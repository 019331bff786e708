"""The smallest server that answers scrapes: one request for each connection, behind the guard of all servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fairlap.machine.serving.connections import ACCEPTED_AT_ONCE, Connections, silence_event_loop
from fairlap.machine.serving.guard import Guard, Request
from fairlap.machine.serving.listening import Listening

Application = Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]  # of WSGI
_MOST_HEAD_BYTES = 16 * 1024
_ENDS_WITHIN_S = 10.0


class MetricsServer:
    """Serves from construction until ``close``, on a separate thread."""

    def __init__(self, application: Application, listening: Listening, names: tuple[str, ...]) -> None:
        self._application = application
        self._listening = listening
        self._guard = Guard(names, listening.door)
        self._loop = asyncio.new_event_loop()
        self._connections = Connections()
        self._closed = asyncio.Event()
        silence_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="fairlap metrics")
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join(_ENDS_WITHIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: _Connection(self._application, self._guard, self._connections),
            sock=self._listening.socket,
            backlog=ACCEPTED_AT_ONCE,
        )
        try:
            await self._closed.wait()
        finally:
            server.close()
            self._connections.close_all()
            await asyncio.sleep(0)  # closes what was just ended


class _Connection(asyncio.Protocol):
    def __init__(self, application: Application, guard: Guard, connections: Connections) -> None:
        self._application = application
        self._guard = guard
        self._connections = connections
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.opened(self, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.closed(self)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._head += data
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if not end and len(self._head) <= _MOST_HEAD_BYTES:
            return
        self._connections.asked(self)
        request = request_in(head) if end and len(head) <= _MOST_HEAD_BYTES else None
        self._transport.write(self._answer(request))
        self._transport.close()

    def _answer(self, request: Request | None) -> bytes:
        if request is None:
            return _response("400 Bad Request", [], b"fairlap: this is not a request of HTTP [E_REQUEST]\n")
        if stopped := self._guard.stopped(request):
            text = f"fairlap: {stopped.message} [{stopped.code}]\n".encode() if stopped.code else b""
            return _response(_status(stopped.status), list(stopped.headers.items()), text)
        status, headers, body = self._scraped(request)
        length = [("Content-Length", str(len(body)))]
        return _response(status, [*headers, *length], b"" if request.method == "HEAD" else body)

    def _scraped(self, request: Request) -> tuple[str, list[tuple[str, str]], bytes]:
        begun: list[tuple[str, list[tuple[str, str]]]] = []
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query,
            "HTTP_ACCEPT": request.header("accept"),
            "HTTP_ACCEPT_ENCODING": request.header("accept-encoding"),
        }
        try:
            body = b"".join(self._application(environ, lambda *start: begun.append((start[0], start[1]))))
        except Exception:  # a query may be anything, and the next scrape is to be answered
            return "500 Internal Server Error", [], b"fairlap: the metrics could not be written [E_REQUEST]\n"
        [(status, headers)] = begun
        return status, headers, body


def request_in(head: bytes) -> Request | None:
    """Parse the head of a request, without its last line ends; None where it is not one."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        return None
    path, _, query = words[1].partition("?")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            return None
        headers.append((name.lower(), value.strip()))
    return Request(words[0], path, query, headers)


def _status(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


_FOR_BROWSERS = ("X-Content-Type-Options: nosniff", "Cross-Origin-Resource-Policy: same-origin")


def _response(status: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
    if not any(name == "Content-Length" for name, _ in headers):
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *headers]
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    return "\r\n".join([*lines, *_FOR_BROWSERS, "", ""]).encode("latin-1") + body
