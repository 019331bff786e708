"""How a client behaves while it is answered: like most, reading slowly, or hanging up before the answer has ended."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

LEFT = "left"
"""The code of an answer that its client did not wait for, which is no failure of the server's."""

SLOW_SOCKET = (
    (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096),
    (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536),
)
"""Of a client that reads slowly: the system takes little from the server that the client has not read."""


@dataclass(frozen=True)
class Manner:
    bytes_per_s: float | None = None  # at which it reads; None: as fast as it can
    leaves_after: int | None = None  # events; None: it stays

    def leaves(self, events: int) -> bool:
        return self.leaves_after is not None and events >= self.leaves_after

    def read(self, count: int) -> int:
        """Take the time that so many bytes take, and return it in nanoseconds: the server does not owe it."""
        taken_s = self.reading_s(count)
        if taken_s:
            time.sleep(taken_s)
        return round(1e9 * taken_s)

    def reading_s(self, count: float) -> float:
        return 0.0 if self.bytes_per_s is None else count / self.bytes_per_s


USUAL = Manner()
