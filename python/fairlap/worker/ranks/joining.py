"""A rank connects to what conducts it, and says which rank it is."""

from __future__ import annotations

import os
import socket

from fairlap.worker.guardian import RANKS_TOKEN
from fairlap.worker.protocol import Join, line_of
from fairlap.worker.ranks.devices import see_own_device
from fairlap.worker.ranks.placement import bind

RANK = "FAIRLAP_RANK"
"""The number of a rank that fairlap itself starts."""

HOST = "FAIRLAP_HOST"
"""The host of a rank by the name that the user gave it."""

NUMBERS = (RANK, "OMPI_COMM_WORLD_RANK", "RANK")  # ours, mpirun's, torchrun's
_CONNECT_WITHIN_S = 20.0
_ASK_AFTER_S, _ASK_EVERY_S, _ASK_TIMES = 5, 5, 3  # whether a silent host is still there


def joined(address: str) -> socket.socket:
    number = _number()
    bind(number)
    see_own_device(number)
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=_CONNECT_WITHIN_S)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    notice_lost_host(connection)
    connection.sendall(line_of(Join(number, os.environ.get(HOST) or socket.gethostname(), os.environ[RANKS_TOKEN])))
    return connection


def notice_lost_host(connection: socket.socket) -> None:
    """Keep the connection alive, since a host that loses its power closes no connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _ASK_AFTER_S),
        ("TCP_KEEPINTVL", _ASK_EVERY_S),
        ("TCP_KEEPCNT", _ASK_TIMES),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _number() -> int:
    for name in NUMBERS:
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    raise SystemExit("This rank of fairlap's has no number; its launcher sets none of RANK and OMPI_COMM_WORLD_RANK.")
