"""One connection to a server that streams: it sends a request, and stamps what comes as it comes.

httpx speaks HTTP. Between the arrival of bytes and their stamp only it runs; events are read when their answer
is over, but for their ends. Neither a proxy nor a redirection is followed, and nothing goes to another host.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Protocol

import msgspec

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable, reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.clients.events import MOST_BYTES, EventTooLarge
from fairlap.scenarios.streams.clients.manner import SLOW_SOCKET, USUAL, Manner
from fairlap.scenarios.streams.protocols.contract import HttpProtocol, error_text
from fairlap.scenarios.streams.servers import StreamServer, credential_of, shown

CLOCK = "monotonic_raw"
"""Of the engine, by its name; ``now_ns`` reads the same one."""

E_CERTIFICATE = "E_CERTIFICATE"
E_SERVER = "E_SERVER"
E_STREAM_BUSY = "E_STREAM_BUSY"
E_STREAM_CUT = "E_STREAM_CUT"
E_STREAM_ENDLESS = "E_STREAM_ENDLESS"
E_STREAM_EVENT = "E_STREAM_EVENT"
E_STREAM_REDIRECT = "E_STREAM_REDIRECT"
E_STREAM_STATUS = "E_STREAM_STATUS"
E_STREAM_TIMEOUT = "E_STREAM_TIMEOUT"

NOT_UNDERSTOOD = 400
"""The status of a request with fields that a server does not know."""

_OK, _REDIRECTIONS, _TOO_MUCH = 200, range(300, 400), (429, 503)
_MOST_OF_A_REFUSAL = 65_536
_SPARE_EVENTS = 64  # besides those of tokens: roles, usage, the end


class StreamFailed(FairlapError):
    """A request has no whole answer."""

    code = E_SERVER


@dataclass(frozen=True)
class Certificates:
    ca: str = ""  # a file of those that are trusted; empty for the system's
    verified: bool = True

    @property
    def text(self) -> str:
        return (f"verified with {self.ca}" if self.ca else "verified") if self.verified else "not verified"

    def context(self) -> ssl.SSLContext:
        return _context(self)


@cache
def _context(certificates: Certificates) -> ssl.SSLContext:
    """Read them once, which takes 30 ms of a core; the connections of all turns share them."""
    try:
        found = ssl.create_default_context(cafile=certificates.ca or None)
    except OSError as error:  # ssl.SSLError is one
        raise InvalidRequest(
            f"cannot read certificates from {certificates.ca}: {reason_of(error)}", code=E_CERTIFICATE
        ) from None
    if not certificates.verified:
        found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    return found


@dataclass
class RawAnswer:
    """What came, with the time of each piece. ``is_done``: its stream ended as the protocol wants."""

    began_ns: int
    ended_ns: int = 0
    events: list[tuple[int, bytes]] = field(default_factory=list)
    is_done: bool = False
    failure: Notice | None = None
    status: int = 0  # 0 before there is one
    has_left: bool = False  # its client hung up


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def httpx_module() -> ModuleType:
    try:
        import httpx
    except ImportError as error:
        raise NotAvailable(f"servers that stream need httpx ({error}): pip install 'fairlap[streams]'") from None
    module: ModuleType = httpx
    return module


class Client(Protocol):
    """Used by one thread at a time."""

    http_version: str

    def connect(self) -> bool:
        """Open the connection before it is timed; return whether that worked."""

    def ask(self, body: bytes, manner: Manner = USUAL) -> RawAnswer:
        """Send a request and read its answer; whatever goes wrong is the answer's failure."""

    def close(self) -> None: ...


def stream_failed(server: StreamServer, what: str, code: str) -> StreamFailed:
    line = "".join(letter if letter.isprintable() else " " for letter in what)  # a terminal obeys others
    return StreamFailed(f"{server.subject} {line}", code=code)


def failure_of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has no trusted certificate: {error.verify_message}"
    return f"does not speak TLS: {error.reason}"


def most_events(tokens: int) -> int:
    return 2 * tokens + _SPARE_EVENTS


class StreamClient:
    def __init__(self, server: StreamServer, certificates: ssl.SSLContext, tokens: int) -> None:
        address, protocol = server.address, server.protocol
        if address is None or not isinstance(protocol, HttpProtocol):
            raise TypeError(f"{server.name} is not asked by HTTP")
        self._httpx: Any = httpx_module()
        self._server, self._protocol, self._path = server, protocol, address.path.rstrip("/")
        credential = credential_of(server)
        self._endpoint = protocol.endpoint(self._path, server.model)
        self._most_events = most_events(tokens)
        host = address.hosts[0]
        self._origin = f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"
        self._sni = {"sni_hostname": address.host} if host != address.host else {}
        self._headers = {
            "Host": address.text,
            "Content-Type": "application/json",
            "Accept": protocol.content_type,
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {credential}"} if credential else {}),
        }
        self.http_version = ""
        self._certificates = certificates
        self._client = self._opened()

    def _opened(self, socket_options: Sequence[Any] = ()) -> Any:
        """Return one connection, which is made when it is first asked."""
        transport = self._httpx.HTTPTransport(
            verify=self._certificates,
            http2=self._origin.startswith("https") and _has_h2(),
            trust_env=False,
            limits=self._httpx.Limits(max_connections=1, keepalive_expiry=None),
            socket_options=socket_options,
        )
        return self._httpx.Client(
            transport=transport, trust_env=False, follow_redirects=False, timeout=self._server.timeout_s
        )

    def close(self) -> None:
        self._client.close()

    def connect(self) -> bool:
        answer = RawAnswer(now_ns())
        probe = self._protocol.probe(self._path, self._server.model)
        with self._failures_in(answer), self._stream(self._client, "GET", probe, b"") as response:
            _beginning_of(response)
        return answer.failure is None

    def ask(self, body: bytes, manner: Manner = USUAL) -> RawAnswer:
        """Give a client that is slow or hangs up a connection for this request alone."""
        answer = RawAnswer(now_ns())
        if manner == USUAL:
            self._ask(self._client, body, manner, answer)
        else:
            with self._opened(() if manner.bytes_per_s is None else SLOW_SOCKET) as own:
                self._ask(own, body, manner, answer)
        answer.ended_ns = now_ns()
        return answer

    def _ask(self, client: Any, body: bytes, manner: Manner, answer: RawAnswer) -> None:
        with self._failures_in(answer), self._stream(client, "POST", self._endpoint, body) as response:
            answer.status = response.status_code
            self.http_version = response.http_version
            self._require_stream(response)
            self._read(response, answer, manner)

    def _stream(self, client: Any, method: str, path: str, body: bytes) -> Any:
        return client.stream(method, self._origin + path, content=body, headers=self._headers, extensions=self._sni)

    def _read(self, response: Any, answer: RawAnswer, manner: Manner) -> None:
        reader, end, events = self._protocol.reader(), self._protocol.end, answer.events
        last_ns = answer.began_ns + int(1e9 * self._server.timeout_s)
        for chunk in response.iter_raw():
            arrived_ns = now_ns()
            try:
                found = reader.feed(chunk)
            except EventTooLarge:
                raise self._failed(f"sent an event of more than {MOST_BYTES:,} bytes", E_STREAM_EVENT) from None
            for data in found:
                if data == end:
                    answer.is_done = True
                else:
                    events.append((arrived_ns, data))
            if len(events) > self._most_events:
                raise self._failed(
                    f"goes on after {len(events):,} events, more than it was asked for", E_STREAM_ENDLESS
                )
            if manner.leaves(len(events)) and not answer.is_done:
                answer.has_left = True
                return
            last_ns += manner.read(len(chunk))
            if arrived_ns > last_ns:
                raise self._failed(f"did not end its answer within {self._server.timeout_s:g} s", E_STREAM_TIMEOUT)

    def _require_stream(self, response: Any) -> None:
        status = response.status_code
        if status in _REDIRECTIONS:
            to = self._shown(response.headers.get("location", "")) or "nowhere"
            raise self._failed(f"redirects to {to}, which is not followed", E_STREAM_REDIRECT)
        if status != _OK:
            reason = self._shown(_reason_in(_beginning_of(response)))
            code = E_STREAM_BUSY if status in _TOO_MUCH else E_STREAM_STATUS
            raise self._failed(f"answered with status {status}{f': {reason}' if reason else ''}", code)
        kind = response.headers.get("content-type", "")
        if not kind.lower().startswith(self._protocol.content_type):
            found = self._shown(kind) or "no type"
            raise self._failed(f"answered with {found} instead of {self._protocol.content_type}", E_STREAM_EVENT)

    @contextmanager
    def _failures_in(self, answer: RawAnswer) -> Iterator[None]:
        httpx = self._httpx
        try:
            yield
        except StreamFailed as failed:
            answer.failure = Notice(failed.code, str(failed))
        except httpx.TimeoutException as error:
            what = "cannot be reached" if isinstance(error, httpx.ConnectTimeout) else "was silent"
            answer.failure = self._failure(f"{what} for {self._server.timeout_s:g} s", E_STREAM_TIMEOUT)
        except httpx.ConnectError as error:
            tls = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
            if tls is None:
                answer.failure = self._failure(f"cannot be reached: {self._shown(str(error))}", E_SERVER)
            else:
                answer.failure = self._failure(failure_of_tls(tls), E_CERTIFICATE)
        except httpx.TransportError as error:
            events = quantity_text.count(len(answer.events), "event")
            after = f"after {events}" if answer.events else "without an answer"
            detail = self._shown(str(error)) or type(error).__name__
            answer.failure = self._failure(f"broke off {after} ({detail})", E_STREAM_CUT)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            answer.failure = self._failure(f"did not answer in HTTP: {self._shown(str(error))}", E_SERVER)

    def _failure(self, what: str, code: str) -> Notice:
        failed = self._failed(what, code)
        return Notice(code, str(failed))

    def _failed(self, what: str, code: str) -> StreamFailed:
        return stream_failed(self._server, what, code)

    def _shown(self, text: str) -> str:
        return shown(text, self._server)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _has_h2() -> bool:
    try:
        import h2  # noqa: F401
    except ImportError:
        return False
    return True


def _beginning_of(response: Any) -> bytes:
    found = b""
    for chunk in response.iter_raw():
        found += chunk
        if len(found) >= _MOST_OF_A_REFUSAL:
            break
    return found[:_MOST_OF_A_REFUSAL]


def _reason_in(body: bytes) -> str:
    """Find the message of an error, as all APIs have it in JSON; any other body is taken whole."""
    try:
        found = msgspec.json.decode(body)
    except NOT_THE_DOCUMENT:
        return body.decode("utf-8", "replace")
    return error_text(found.get("error", found) if isinstance(found, dict) else found)
