"""What every request passes first: the host that it names, its method and its token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

_METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]  # names in small letters

    def all_of(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]

    def header(self, name: str) -> str:
        return next(iter(self.all_of(name)), "")


@dataclass(frozen=True)
class Stopped:
    """The answer to a request that does not pass; a redirection has no code."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)


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

    def is_open_to(self, request: Request) -> bool:
        scheme, _, bearer = request.header("authorization").partition(" ")
        if scheme.lower() == "bearer" and self.knows([bearer.strip()]):
            return True
        pairs = (part.strip().partition("=") for each in request.all_of("cookie") for part in each.split(";"))
        return any(name == self._cookie_name and _same(value, self._cookie.encode()) for name, _, value in pairs)


class Guard:
    def __init__(self, names: Collection[str] = (), door: Door | None = None) -> None:
        """``names`` are hosts that a request may name besides IP addresses and localhost."""
        self._names = {"localhost", socket.gethostname().lower(), *(each.lower() for each in names)}
        self._door = door

    def stopped(self, request: Request) -> Stopped | None:
        """None for a request that passes."""
        if not self._is_named(request.all_of("host")):
            why = "this server does not have the name that the request gives; use its IP address or the name it serves"
            return Stopped(421, "E_SERVE_HOST", why)
        if request.method not in _METHODS:
            why = "nothing can be changed here: use GET or HEAD"
            return Stopped(405, "E_REQUEST", why, {"allow": ", ".join(_METHODS)})
        return None if self._door is None else self._without_token(self._door, request)

    def _is_named(self, hosts: Collection[str]) -> bool:
        """Check the host that is named, which refuses a foreign page whose name was pointed at this machine.

        Such a page still sends its own name.
        """
        if len(hosts) != 1:
            return False
        [host] = hosts
        bare, colon, port = host.rpartition(":")
        name = bare if colon and port.isdigit() else host
        name = name.lower().removesuffix(".")
        return name in self._names or _is_address(name)

    @staticmethod
    def _without_token(door: Door, request: Request) -> Stopped | None:
        query = parse_qsl(request.query, keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if tokens and door.knows(tokens):
            path = "/" + quote(request.path.lstrip("/"))  # two slashes would lead to another host
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            there = {"location": f"{path}?{rest}" if rest else path, "set-cookie": door.cookie}
            return Stopped(303, "", "", there)
        if not tokens and door.is_open_to(request):
            return None
        why = "a valid token is needed: open the address that the server printed, or send it as a bearer token"
        return Stopped(401, "E_SERVE_TOKEN", why, {"www-authenticate": "Bearer"})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _same(given: str, expected: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected)
