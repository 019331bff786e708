"""What every request passes first: the host it names, its method and its token; and the headers of every answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from fastapi.datastructures import Headers
from fastapi.responses import RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_METHODS = ("GET", "HEAD")
_MOST_SHOWN = 300


def refusal(path: str, status: int, code: str, message: str) -> Response:
    """In one line; the API's is the object that the command line prints with --json."""
    line = " ".join(message.split())
    line = line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."
    if path.startswith(API):
        document = json.dumps({"error": {"code": code, "message": line}})
        return Response(f"{document}\n".encode(), status, media_type="application/json")
    text = f"fairlap: {line} [{code}]\n".encode(errors="replace")
    return Response(text, status, media_type="text/plain; charset=utf-8")


class Door:
    """Lets requests in that know the token: in the address once, in the cookie set then, or as a bearer."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self._cookie_name = f"fairlap_{port}"  # a browser sends cookies to all ports of a host
        self._cookie = hmac.new(self._token, b"cookie of fairlap serve", hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        return f"{self._cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, given: Iterable[str]) -> bool:
        return any(_same(each, self._token) for each in given)

    def is_open_to(self, headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.knows([bearer.strip()]):
            return True
        pairs = (part.strip().partition("=") for each in headers.getlist("cookie") for part in each.split(";"))
        return any(name == self._cookie_name and _same(value, self._cookie.encode()) for name, _, value in pairs)


class Guard:
    def __init__(self, inside: ASGIApp, names: Collection[str] = (), door: Door | None = None) -> None:
        """``names`` are hosts that a request may name besides IP addresses and localhost."""
        self._inside = inside
        self._names = {"localhost", socket.gethostname().lower(), *(each.lower() for each in names)}
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _guarded(message.get("headers", []))
            await send(message)

        answer = self._refusal(scope) or self._inside
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        path, headers = scope["path"], Headers(scope=scope)
        if not self._is_named(headers.getlist("host")):
            why = "this server does not have the name that the request gives; use its IP address, or --host NAME"
            return refusal(path, 421, "E_SERVE_HOST", why)
        if scope["method"] not in _METHODS:
            refused = refusal(path, 405, "E_REQUEST", "the store is only read: use GET or HEAD")
            refused.headers["allow"] = ", ".join(_METHODS)
            return refused
        return None if self._door is None else self._stopped(self._door, scope, headers)

    def _is_named(self, hosts: Collection[str]) -> bool:
        """A page of elsewhere whose name was pointed at this machine would be refused: it still sends its own name."""
        if len(hosts) != 1:
            return False
        [host] = hosts
        bare, colon, port = host.rpartition(":")
        name = bare if colon and port.isdigit() else host
        name = name.lower().removesuffix(".")
        return name in self._names or _is_address(name)

    @staticmethod
    def _stopped(door: Door, scope: Scope, headers: Headers) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if tokens and door.knows(tokens):
            path = "/" + quote(scope["path"].lstrip("/"))  # two slashes would lead to another host
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            moved = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            moved.headers["set-cookie"] = door.cookie
            return moved
        if not tokens and door.is_open_to(headers):
            return None
        why = "a valid token is needed: open the address that `fairlap serve` printed, or send it as a bearer token"
        refused = refusal(scope["path"], 401, "E_SERVE_TOKEN", why)
        refused.headers["www-authenticate"] = "Bearer"
        return refused


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A page may have a policy for its own scripts; everything else has none."""
    policies = [value for name, value in headers if name == b"content-security-policy"] or [POLICY.encode()]
    ours = {**_HEADERS, "content-security-policy": policies[0].decode() + _NOT_FRAMED}
    kept = [(name, value) for name, value in headers if name.decode() not in ours]
    return kept + [(name.encode(), value.encode()) for name, value in ours.items()]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _same(given: str, expected: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected)
