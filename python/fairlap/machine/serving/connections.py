"""Limits on connections, so that clients that send half a request, or nothing, do not keep others out.

A connection waits until the head of a request is complete, and again after the answer. One that waits too long is
closed; and where there are too many, the one that has waited longest makes room for the new one, which a client that
sends its request at once hardly notices.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Hashable

HEAD_WITHIN_S = 5.0
ANSWERED_WITHIN_S = 120.0  # and read by the client
ACCEPTED_AT_ONCE = 16
"""Accepted connections have descriptors before anything can close them, so a server takes few at once."""

_MOST, _SHARE_OF_DESCRIPTORS = 256, 4


def most_connections() -> int:
    """Limit connections to a part of this process's descriptors; files and the store need some too."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if allowed == resource.RLIM_INFINITY else max(2, min(_MOST, allowed // _SHARE_OF_DESCRIPTORS))


def silence_event_loop() -> None:
    """Without descriptors, asyncio reports a traceback for every connection that it cannot accept."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)


class Connections:
    """Those of one server. For one event loop."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most_connections() if most is None else most
        self._transports: dict[Hashable, asyncio.Transport] = {}
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._waiting: dict[Hashable, None] = {}  # the longest first

    def __len__(self) -> int:
        return len(self._transports)

    def opened(self, key: Hashable, transport: asyncio.Transport) -> None:
        if len(self._transports) >= self._most:
            longest = next(iter(self._waiting), None)
            if longest is None:
                transport.abort()
                return
            self._end(longest)
        self._transports[key] = transport
        self.waits(key)

    def waits(self, key: Hashable) -> None:
        """For the head of a request, unless its client still reads an answer."""
        if key not in self._transports:
            return
        if self._transports[key].get_write_buffer_size():
            self.asked(key)
            return
        self._waiting[key] = None
        self._end_after(HEAD_WITHIN_S, key)

    def asked(self, key: Hashable) -> None:
        """Note that the head is complete, and limit the time to the answer."""
        if key in self._transports:
            self._waiting.pop(key, None)
            self._end_after(ANSWERED_WITHIN_S, key)

    def closed(self, key: Hashable) -> None:
        self._transports.pop(key, None)
        self._waiting.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def close_all(self) -> None:
        for key in list(self._transports):
            self._end(key)

    def _end_after(self, seconds: float, key: Hashable) -> None:
        if timer := self._timers.pop(key, None):
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._end, key)

    def _end(self, key: Hashable) -> None:
        transport = self._transports.get(key)
        self.closed(key)
        if transport is not None:
            transport.abort()
