"""A kept HTTP connection to one server. Whatever goes wrong on it is the server's failure, in one line."""

from __future__ import annotations

import http.client
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPMessage

import msgspec

from fairlap.errors import shortened
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.request.fields.server_address import ServerAddress

_OK = 200
_MOST_BYTES = 2**31
_CLOSED = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
_IDLE_S = 1.0  # after it, a server may close the connection just as something is asked of it


class RefusedByServer(ServerFailed):
    """It answered, with another status than 200."""


@dataclass(frozen=True)
class HttpAnswer:
    headers: HTTPMessage  # whose names are found in any case
    body: bytes


class KeptConnection:
    """Neither a proxy nor a redirection is followed: nothing is sent to another host than this one."""

    def __init__(self, address: ServerAddress, timeout_s: float) -> None:
        self.address, self._timeout_s = address, timeout_s
        self._client: http.client.HTTPConnection | None = None
        self._answered_s = 0.0
        self.is_kept = True  # whether the server kept it after its last answer

    def get(self, path: str) -> HttpAnswer:
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        return self._ask("POST", path, body, headers)

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            response = self._response(method, path, body, headers)
            answer = self._read(response)
        except TimeoutError:
            raise self._failed(f"did not answer within {self._timeout_s:g} s") from None
        except http.client.IncompleteRead as error:
            expected = "" if error.expected is None else f" of {len(error.partial) + error.expected:,}"
            raise self._failed(f"cut its answer off after {len(error.partial):,}{expected} bytes") from None
        except _CLOSED:
            raise self._failed("closed the connection without an answer") from None
        except (http.client.HTTPException, ValueError) as error:
            raise self._failed(f"did not answer in HTTP ({type(error).__name__})") from None
        except OSError as error:
            raise self._failed(f"was lost: {error.strerror or error}") from None
        self.is_kept, self._answered_s = not response.will_close, time.monotonic()
        if response.status != _OK:
            raise RefusedByServer(
                f"the server at {self.address.text} answered {path} with status {response.status}"
                f"{_reason_in(answer.body)}"
            )
        return answer

    def _response(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """Send a request on the kept connection, and again on a new one where the server had closed the idle one.

        A server may close a kept connection while nothing is asked of it. A request is sent again only where that is
        what happened: one that was dropped must not be answered at the second attempt, as if nothing had been.
        """
        client = self._client
        if client is None or client.sock is None or _is_over(client):
            client, was_idle = self._connected(), False
        else:
            was_idle = time.monotonic() - self._answered_s > _IDLE_S
        self._client = client
        try:
            client.request(method, path, body, dict(headers))
            return client.getresponse()
        except _CLOSED:
            client.close()
            if not was_idle:
                raise
        client = self._client = self._connected()
        client.request(method, path, body, dict(headers))
        return client.getresponse()

    def _read(self, response: http.client.HTTPResponse) -> HttpAnswer:
        if (response.length or 0) > _MOST_BYTES:
            raise self._failed(f"announced an answer of {response.length:,} bytes")
        known = response.length is not None
        body = response.read() if known else response.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise self._failed(f"answered with more than {_MOST_BYTES:,} bytes")
        return HttpAnswer(response.headers, body)

    def _connected(self) -> http.client.HTTPConnection:
        reasons = []
        for host in self.address.hosts:
            client = http.client.HTTPConnection(host, self.address.port, timeout=self._timeout_s)
            try:
                client.connect()
            except ConnectionRefusedError:
                reasons.append("is not there: nothing listens at this address")
            except TimeoutError:
                reasons.append(f"cannot be reached within {self._timeout_s:g} s")
            except OSError as error:
                reasons.append(f"cannot be reached: {error.strerror or error}")
            else:
                return client
        raise self._failed(reasons[0])

    def _failed(self, what: str) -> ServerFailed:
        """Close the connection, so that the next request begins with a new one, and return the error."""
        if self._client is not None:
            self._client.close()
            self._client = None
        return ServerFailed(f"the server at {self.address.text} {what}")


def _is_over(client: http.client.HTTPConnection) -> bool:
    """Whether the server closed it, or sent something that was not asked for, after its last answer."""
    ready = select.poll()
    ready.register(client.sock, select.POLLIN)
    return bool(ready.poll(0))


def _reason_in(body: bytes) -> str:
    """Shorten the server's message to its first line, or to that of the "error" in it."""
    try:
        found = msgspec.json.decode(body)
        text = str(found["error"]) if isinstance(found, dict) and "error" in found else body.decode("utf-8", "replace")
    except NOT_THE_DOCUMENT:
        text = body[:1000].decode("utf-8", "replace")
    line = "".join(letter if letter.isprintable() else " " for letter in shortened(text))  # a terminal obeys others
    return f": {line}" if line else ""
