"""The address of a shared store, and what of it may be printed: never a password."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from fairlap.errors import InvalidRequest, NotAvailable

_SCHEMES = ("postgresql://", "postgres://")
_FORM = "postgresql://USER@HOST:5432/DATABASE"
_DEFAULT_PORT = "5432"

CONNECT_WITHIN_S = 10


class Address(msgspec.Struct, frozen=True):
    """``shown`` is for people; ``target`` is the same for all users of one database."""

    parameters: dict[str, Any]  # of libpq
    shown: str
    target: str
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def address_of(url: str) -> Address:
    """Everything that can be wrong with the URL itself is an error here, and nothing of it is repeated."""
    if not url.startswith(_SCHEMES):
        raise InvalidRequest(f"FAIRLAP_STORE is neither a file nor a URL such as {_FORM}", code="E_STORE_URL")
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise NotAvailable("a shared store needs psycopg: pip install 'fairlap[postgresql]'") from None
    try:
        parameters = dict(conninfo_to_dict(url))
    except (Error, UnicodeError):
        raise InvalidRequest(
            f"FAIRLAP_STORE is not a valid URL; it has the form {_FORM}, with special characters as %XX",
            code="E_STORE_URL",
        ) from None
    given = parameters.get("connect_timeout")
    if not re.fullmatch(r"[1-9]\d*", str(given or CONNECT_WITHIN_S)):
        raise InvalidRequest(
            "connect_timeout in FAIRLAP_STORE must be a whole number of seconds, at least 1", code="E_STORE_URL"
        )
    defaults = {
        "connect_timeout": CONNECT_WITHIN_S,
        "application_name": "fairlap",
        # A network that has gone silent is noticed after about 25 seconds.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
    }
    user = f"{quote(str(parameters['user']))}@" if parameters.get("user") else ""
    hosts, ports = str(parameters.get("host") or ""), str(parameters.get("port") or "")
    port = "" if set(ports.split(",")) <= {"", _DEFAULT_PORT} else f":{ports}"
    database = quote(str(parameters.get("dbname") or ""))
    target = f"{quote(hosts, safe=',:.')}{port}/{database}"
    return Address({**defaults, **parameters}, f"postgresql://{user}{target}", target, _secrets(url, parameters))


def _secrets(url: str, parameters: dict[str, Any]) -> tuple[str, ...]:
    """As given, and as decoded."""
    found = {str(parameters[name]) for name in ("password", "sslpassword") if parameters.get(name)}
    written = re.findall(r"(?:^\w+://[^/?#@]*?:|[?&](?:ssl)?password=)([^@&/]+)", url)
    return tuple(sorted(found | {text for text in written if unquote(text) in found}, key=len, reverse=True))
