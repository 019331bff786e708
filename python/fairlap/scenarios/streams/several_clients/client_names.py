"""Which clients share a load: so many processes on this machine, or one on each machine of a Ray cluster."""

from __future__ import annotations

import re

from fairlap.errors import InvalidRequest

E_CLIENTS = "E_CLIENTS"
MOST_CLIENTS = 64
_CLUSTER = re.compile(r"auto|ray://[^/\s]+:\d{1,5}")


def clients_named(text: str) -> str:
    """Read ``4``, ``auto`` or ``ray://HOST:PORT``."""
    if text.isdecimal() and 1 <= int(text) <= MOST_CLIENTS:
        return str(int(text))
    if _CLUSTER.fullmatch(text):
        return text
    raise InvalidRequest(
        f"--clients {text} is neither a number of processes up to {MOST_CLIENTS} nor a Ray cluster: auto or "
        "ray://HOST:10001",
        code=E_CLIENTS,
    )
