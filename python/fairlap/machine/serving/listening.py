"""The address that a server listens at, and the token that it asks for where other machines can reach it."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.machine.serving.guard import Door

TOKEN = "FAIRLAP_SERVE_TOKEN"
NOT_ENCRYPTED = "the connection is not encrypted; on a network you do not trust, use `ssh -L` instead"
_TOKEN_FORM = re.compile(r"[A-Za-z0-9._~-]{16,256}")


class Listening:
    """From construction on."""

    def __init__(self, host: str, port: int, *, options: str = "--host or --port") -> None:
        """``options`` are those to change where the address cannot be used."""
        given = _given_token()
        self.socket = _listening(host, port, options)
        address, self.port = self.socket.getsockname()[:2]
        bound = ipaddress.ip_address(address.partition("%")[0])
        self.is_loopback = bound.is_loopback
        self.drawn_token = "" if given or bound.is_loopback else secrets.token_urlsafe(32)
        self.asks_for_given_token = bool(given)
        token = given or self.drawn_token
        self.door = Door(token, self.port) if token else None
        self.address = _joined(socket.gethostname() if bound.is_unspecified else host, self.port)


def _given_token() -> str:
    token = os.environ.get(TOKEN, "")
    if token and not _TOKEN_FORM.fullmatch(token):
        raise InvalidRequest(
            f"{TOKEN} must have 16 to 256 letters, digits, or characters of '-._~'", code="E_SERVE_TOKEN"
        )
    return token


def _listening(host: str, port: int, options: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotAvailable(f"cannot serve on {_joined(host, port)}: {reason}; give another {options}") from None
    return listening


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
