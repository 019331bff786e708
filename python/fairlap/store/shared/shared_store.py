"""Runs of many machines in PostgreSQL: read, imported, exported and removed as in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from fairlap.errors import InvalidRequest
from fairlap.store.database import TEXTS, Database
from fairlap.store.errors import NoSuchRun, StoreError, StoreIsReadOnly
from fairlap.store.file_store import Store
from fairlap.store.opening import store_path
from fairlap.store.schema import APPLICATION_ID, FIRST_SCHEMA, RESULTS, STEPS, add_columns, lacking_columns
from fairlap.store.shared.address import Address, address_of
from fairlap.store.shared.connection import PAUSES_S, Connection, connect
from fairlap.store.shared.errors import readable_errors

# The tables of a shared store: made when there are none, brought up to date when they are old. Machines that come at
# the same time take turns: all of it happens in one transaction under an advisory lock.
_NEWEST = FIRST_SCHEMA + len(STEPS) - 1


def prepare(db: Connection, address: Address, *, reading: bool) -> None:
    schema = _schema(db, address)
    if schema is None and reading:
        raise NoSuchRun(f"no run has been stored yet; runs will be stored in {address.shown}")
    if schema is None or schema < _NEWEST or (not reading and lacking_columns(db)):
        try:
            _bring_up_to_date(db, address)
        except StoreIsReadOnly as error:
            raise StoreIsReadOnly(_why_not(schema, address)) from error


def _bring_up_to_date(db: Connection, address: Address) -> None:
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(?)", (APPLICATION_ID,))
        schema = _schema(db, address)  # asked again: another machine may have been quicker
        if schema is None:
            db.execute("CREATE SCHEMA IF NOT EXISTS fairlap")
            db.execute("CREATE TABLE store (number INTEGER PRIMARY KEY CHECK (number = 1), schema INTEGER NOT NULL)")
            db.execute("INSERT INTO store (number, schema) VALUES (1, ?)", (FIRST_SCHEMA - 1,))
            schema = FIRST_SCHEMA - 1
        for number in range(schema + 1, _NEWEST + 1):
            STEPS[number - FIRST_SCHEMA](db)
            if number == FIRST_SCHEMA:
                db.execute("ALTER TABLE runs ADD COLUMN content TEXT")  # SHA-256 of what the run holds
        if schema < _NEWEST:
            db.execute("UPDATE runs SET content = NULL")  # steps may have changed what runs hold
        db.execute("UPDATE store SET schema = ?", (_NEWEST,))
        add_columns(db, lacking_columns(db))
        db.execute(f"CREATE OR REPLACE VIEW {RESULTS}")  # with all columns


def _schema(db: Connection, address: Address) -> int | None:
    """None where there are no tables yet."""
    tables = {name for (name,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'fairlap'")}
    if not tables:
        return None
    if not {"store", "runs"} <= tables:
        raise InvalidRequest(
            f"the schema fairlap of {address.shown} belongs to something else; give fairlap a database of its own"
        )
    [[schema]] = db.execute("SELECT schema FROM fairlap.store")
    if schema > _NEWEST:
        raise StoreError(
            f"{address.shown} was brought up to date by a newer fairlap (schema {schema}; this one knows up to"
            f" {_NEWEST}); update fairlap on this machine",
            code="E_STORE_NEWER",
        )
    return int(schema)


def _why_not(schema: int | None, address: Address) -> str:
    lacks = "has no tables yet" if schema is None else "has the tables of an older fairlap"
    return f"{address.shown} {lacks}, which this user may not change; let their owner run `fairlap runs push`"


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

    def writing_alone(self, run: str) -> NoReturn:
        raise InvalidRequest("a race is recorded in the file of its machine, and sent when it has ended")

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
