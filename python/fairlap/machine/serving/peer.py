"""Whose process is at the other end of a connection on this machine, as the kernel lists it (Linux)."""

from __future__ import annotations

import ipaddress
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _USER = 1, 2, 7  # columns


def user_of_peer(peer: tuple[str, int], server_port: int) -> int | None:
    """Find the user of a peer on this machine; None for another machine, and where the kernel lists no sockets."""
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
