"""Errors of SQLite as messages that a user can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlap.errors import FairlapError, InvalidRequest, shortened
from fairlap.json_errors import NOT_THE_DOCUMENT

CHANGED = "samples are not what was written"


class StoreError(FairlapError):
    """The store of runs cannot be used; the message gives the reason and the remedy."""

    code = "E_STORE"


class StoreIsFull(StoreError):
    """Nothing more can be written. What was stored before is intact."""

    code = "E_STORE_FULL"


class StoreIsBusy(StoreError):
    """Another process has been writing for longer than we wait."""

    code = "E_STORE_BUSY"


class StoreIsReadOnly(StoreError):
    """This user may not write there."""

    code = "E_STORE_READ_ONLY"


class StoreIsDamaged(StoreError):
    """The file is no longer what SQLite wrote."""

    code = "E_STORE_DAMAGED"


class NoSuchRun(InvalidRequest):
    """The name fits no run, or several."""

    code = "E_NO_RUN"


_ELSEWHERE = "set FAIRLAP_STORE to a file elsewhere"


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except NOT_THE_DOCUMENT as error:  # in a cell
        raise damaged(path, shortened(str(error))) from None
    except TypeError as error:  # SQLite keeps a value of any type in any column
        raise damaged(path, f"a cell has another type than fairlap wrote: {shortened(str(error))}") from error


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return StoreIsFull(f"the disk is full: {path} could not be written; what was stored before is intact")
    if code == sqlite3.SQLITE_IOERR:
        return StoreIsFull(
            f"{path} could not be written or read ({error}); is the disk full or gone? What was stored before is intact"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreIsBusy(f"another process keeps writing to {path}; try again when it has ended, or {_ELSEWHERE}")
    if code == sqlite3.SQLITE_READONLY:
        return StoreIsReadOnly(f"no permission to write {path}; fix its permissions, or {_ELSEWHERE}")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreIsReadOnly(f"cannot open {path}; fix the permissions of its folder, or {_ELSEWHERE}")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or _reported_by_python(error):
        return damaged(path, shortened(str(error)))
    return StoreError(f"{path}: {shortened(str(error))}")


def _reported_by_python(error: sqlite3.Error) -> bool:
    """Damage that SQLite itself does not see: in a text, or in samples."""
    return primary_code(error) == -1 and ("decode to UTF-8" in str(error) or str(error) == CHANGED)


def damaged(path: Path, how: str) -> StoreIsDamaged:
    return StoreIsDamaged(
        f"{path} is damaged ({how});"
        " `fairlap runs repair` moves what can still be read into a new store, and keeps the damaged file"
    )


def primary_code(error: sqlite3.Error) -> int:
    """Without the details that SQLite packs into the higher bytes; -1 for an error that is not SQLite's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF
