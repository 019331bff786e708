"""Runs of many machines in PostgreSQL: read, imported, exported and removed as in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from fairlap.errors import InvalidRequest
from fairlap.store.database import TEXTS, Database
from fairlap.store.opening import store_path
from fairlap.store.shared.address import Address, address_of
from fairlap.store.shared.connection import PAUSES_S, Connection, connect
from fairlap.store.shared.errors import readable_errors
from fairlap.store.shared.opening import prepare
from fairlap.store.store import Store


def open_shared_store(url: str, *, reading: bool = False) -> SharedStore:
    return SharedStore(address_of(url), reading=reading)


class SharedStore(Store):
    """``path`` is the file of this machine, in which races are recorded before they are sent here."""

    def __init__(self, address: Address, *, reading: bool = False, patient: bool = True) -> None:
        self.path = store_path()
        self.address = address
        self._reads_only = reading
        self._connection = self._connected(PAUSES_S if patient else ())

    @property
    def where(self) -> str:
        return self.address.shown

    def close(self) -> None:
        self._connection.close()

    def reconnect(self) -> None:
        """After the server went away."""
        self._connection.close()
        self._connection = self._connected(PAUSES_S)

    def begin(self, *_: object, **__: object) -> NoReturn:
        raise InvalidRequest("a race is recorded in the file of its machine, and sent when it has ended")

    resume = begin

    def remove(self, run: str) -> str:
        """Remove a run here alone; the machine that raced keeps its own."""
        run = self.id_of(run)
        with self._writing() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run,))
        return run

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with self._reading():
            yield

    def known_digests(self, runs: Iterable[str]) -> dict[str, str]:
        """By run: the digest of its content, of those that are here."""
        with self._reading() as db:
            query = f"SELECT id, coalesce(content, '') FROM runs WHERE id IN ({TEXTS})"
            return dict(db.execute(query, (json.dumps(list(runs)),)))

    def _connected(self, pauses_s: Sequence[float]) -> Connection:
        connection = connect(self.address, pauses_s)
        try:
            prepare(connection, self.address, reading=self._reads_only)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """Read the state of one moment, although other machines write."""
        if self._connection.in_transaction:
            with readable_errors(self.address):
                yield self._connection
            return
        with readable_errors(self.address), self._connection.transaction("ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        with readable_errors(self.address), self._connection.transaction():
            yield self._connection
