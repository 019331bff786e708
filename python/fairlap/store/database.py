"""What the store asks of a database. SQLite's own connection has it, and so has that of a shared store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


class Answer(Protocol):
    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """Statements are in the SQL that SQLite and PostgreSQL share, with ``?`` for each parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Answer: ...

    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]], /) -> object: ...


NUMBERS = "SELECT CAST(value AS BIGINT) FROM json_each(?)"
TEXTS = "SELECT CAST(value AS TEXT) FROM json_each(?)"
"""For ``IN``: the elements of a parameter that is a list in JSON."""
