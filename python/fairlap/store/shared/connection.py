"""A connection to PostgreSQL that takes the store's statements, and gives up on a server that stays silent."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fairlap.store.database import Answer
from fairlap.store.shared.address import Address
from fairlap.store.shared.dialect import cell, translated
from fairlap.store.shared.errors import StoreIsUnreachable, readable_errors, unreachable

if TYPE_CHECKING:
    import psycopg

ANSWER_WITHIN_S = 30.0
PAUSES_S = (0.5, 1.0, 2.0)
"""Between attempts at a server that refuses the connection, as one does that restarts."""


def connect(address: Address, pauses_s: Sequence[float] = PAUSES_S) -> Connection:
    """Connect, with retries; a server that does not answer at all is tried once, since that takes long enough."""
    for pause_s in pauses_s:
        began_s = time.monotonic()
        try:
            return _connect(address)
        except StoreIsUnreachable:
            if time.monotonic() - began_s > max(pauses_s):
                raise
        time.sleep(pause_s)
    return _connect(address)


def _connect(address: Address) -> Connection:
    import psycopg

    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # errors are reported here, once
    with readable_errors(address):
        # Without prepared statements, which a connection pooler between us and the server would lose.
        raw = psycopg.connect(**address.parameters, autocommit=True, prepare_threshold=None)
    connection = Connection(raw, address)
    try:
        connection.execute("SET search_path TO fairlap")
    except BaseException:
        connection.close()
        raise
    return connection


class Connection:
    """A ``Database``."""

    def __init__(self, raw: psycopg.Connection[Any], address: Address) -> None:
        self._raw = raw
        self._address = address
        self._silent = False

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Answer:
        with self._answered():
            return self._raw.execute(translated(statement), [cell(each) for each in parameters], binary=True)  # type: ignore[arg-type, no-any-return, unused-ignore]

    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]], /) -> None:
        cells = [[cell(each) for each in one] for one in parameters]
        if cells:
            with self._answered():
                self._raw.cursor().executemany(translated(statement), cells)  # type: ignore[arg-type, unused-ignore]

    @property
    def in_transaction(self) -> bool:
        return bool(self._raw.info.transaction_status)

    def close(self) -> None:
        with suppress(Exception):
            self._raw.close()

    @contextmanager
    def transaction(self, kind: str = "") -> Iterator[None]:
        """All or nothing. A connection that was lost in it has left nothing on the server."""
        self.execute(f"BEGIN {kind}")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                self.execute("ROLLBACK")
            raise

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """Limit the wait for a server that hangs: the operating system reports only a network that is gone."""
        clock = threading.Timer(ANSWER_WITHIN_S, self._give_up)
        clock.daemon = True
        clock.start()
        try:
            with readable_errors(self._address):
                yield
        except StoreIsUnreachable:
            if self._silent:
                raise unreachable(self._address, f"no answer within {ANSWER_WITHIN_S:g} seconds") from None
            raise
        finally:
            clock.cancel()

    def _give_up(self) -> None:
        self._silent = True
        with suppress(OSError), socket.socket(fileno=os.dup(self._raw.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
