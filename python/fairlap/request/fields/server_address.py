"""The address of a server that already runs, ``http://127.0.0.1:8000/v2/models/x``, and whether it may be spoken to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fairlap.errors import InvalidRequest
from fairlap.request.names import ContestantName

_ADDRESS = re.compile(
    r"(?P<scheme>https?|grpcs?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?(?P<path>/[!-~]*)?",
    re.IGNORECASE,
)
_NOT_IN_A_PATH = re.compile(r"[?#@\\]")
_LOCALHOST = ("127.0.0.1", "::1")  # not asked of a resolver, which may send packets
_MOST_PORT = 65535
_PORTS = {"http": 80, "https": 443}
BY_GRPC = ("grpc", "grpcs")
"""Schemes of servers by gRPC, without and with TLS; they have no usual port."""
UNENCRYPTED = ("http", "grpc")
"""Schemes of servers of any model; only those of language models are asked by TLS."""


@dataclass(frozen=True)
class ServerAddress:
    host: str  # without brackets
    port: int
    path: str
    scheme: str = "http"

    @property
    def hosts(self) -> tuple[str, ...]:
        """To be tried in turn."""
        return _LOCALHOST if self.host.lower() == "localhost" else (self.host,)

    @property
    def is_loopback(self) -> bool:
        """By what is written alone: the name of a host is not looked up."""
        try:
            return all(ipaddress.ip_address(host).is_loopback for host in self.hosts)
        except ValueError:
            return False

    @property
    def is_by_grpc(self) -> bool:
        return self.scheme in BY_GRPC

    @property
    def is_encrypted(self) -> bool:
        return self.scheme in ("https", "grpcs")

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def server_address(
    url: str, *, schemes: tuple[str, ...] = ("http",), example: str = "http://127.0.0.1:8000/v2/models/NAME"
) -> ServerAddress:
    found = _ADDRESS.fullmatch(url)
    scheme = found["scheme"].lower() if found else ""
    port = int(found["port"] or _PORTS.get(scheme, 0)) if found else 0
    path = (found["path"] or "/") if found else ""
    if found is None or scheme not in schemes or not 0 < port <= _MOST_PORT or _NOT_IN_A_PATH.search(path):
        shown = re.sub(r"//[^/@]*@", "//...@", url)  # a login may hold a password
        raise InvalidRequest(
            f"{shown!r} is not the address of a server, without login and by {' or '.join(schemes)}; write {example}",
            code="E_CONTESTANT",
        )
    return ServerAddress(found["host"].strip("[]"), port, path, scheme)


def require_confirmed(contestants: Iterable[ContestantName], *, remote: bool) -> None:
    """Refuse other hosts than this machine, unless they are confirmed. Sends nothing, not even to a resolver."""
    for name in contestants:
        if name.url and not remote:
            address = server_address(name.url, schemes=(*_PORTS, *BY_GRPC))  # what speaks to it may refuse some
            require_loopback(name.text, address, "the inputs of the model")


def require_loopback(contestant: str, address: ServerAddress, sent: str) -> None:
    if not address.is_loopback:
        raise InvalidRequest(
            f"{contestant}: {address.host} is not a loopback address, and {sent} would be sent to it; add --remote to "
            "confirm that",
            code="E_REMOTE",
        )
