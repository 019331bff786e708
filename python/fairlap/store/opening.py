"""The path of the store, and opening it: created when there is none, migrated when it is old."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from fairlap.machine.files.private_files import make_private_file, make_private_folder, tighten
from fairlap.machine.files.regular_file import require_regular
from fairlap.machine.files.user_folders import user_data
from fairlap.store.errors import (
    NoSuchRun,
    StoreError,
    StoreIsFull,
    StoreIsReadOnly,
    primary_code,
    readable_errors,
)
from fairlap.store.schema import APPLICATION_ID, FIRST_SCHEMA, RESULTS, STEPS, add_columns, lacking_columns

_WAIT_FOR_OTHERS_S = 30.0
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL", re.IGNORECASE)
_OPENED_WITHIN_S = 60.0
_APPLICATION_ID_AT = 68  # in the header of a database of SQLite
_FIRST_PAGE_OF_LOG_AT = 32 + 24  # of a log that was not yet written back; that of a new store begins with its header
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


def shared_url() -> str:
    """``FAIRLAP_STORE`` where it names a server, else empty. It may hold a password, so it is never printed."""
    chosen = os.environ.get("FAIRLAP_STORE", "")
    return chosen if "://" in chosen else ""


def store_path() -> Path:
    """Find this machine's file: ``FAIRLAP_STORE``, else ``FAIRLAP_LOCAL_STORE``, else in the user's data folder."""
    chosen = "" if shared_url() else os.environ.get("FAIRLAP_STORE")
    chosen = chosen or os.environ.get("FAIRLAP_LOCAL_STORE")
    return Path(chosen) if chosen else _usual_path()


def _usual_path() -> Path:
    return user_data() / "runs.sqlite"


def require_folder(path: Path) -> None:
    """Refuse a named store in a folder that is not there, which may be misspelt; SQLite makes no folder either.

    The folder of the usual store is made.
    """
    with _reachable(path):
        if path == _usual_path() or path.parent.exists():
            return
    nearest = next(each for each in path.absolute().parents if each.exists())
    raise StoreError(
        f"the store {path} cannot be created: there is no folder {path.parent} (but there is {nearest}); correct "
        "FAIRLAP_STORE, or make the folder"
    )


def require_store(path: Path) -> None:
    """Raise NoSuchRun where there is no store yet, and StoreError where none can be made either."""
    with _reachable(path):
        require_regular(path)
        if path.exists():
            return
        folder = next(each for each in path.absolute().parents if each.exists())
        with TemporaryDirectory(prefix=".fairlap-", dir=folder):  # nothing else shows what each file system allows
            pass
        if path != _usual_path() and not path.parent.exists():
            raise NoSuchRun(
                f"there is no store {path}, nor a folder {path.parent}; correct FAIRLAP_STORE, or make the folder"
            )
    raise NoSuchRun(f"no run has been stored yet; runs will be stored in {path}")


@contextmanager
def _reachable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StoreIsReadOnly if error.errno in _NOT_WRITABLE else StoreError
        raise kind(
            f"the store {path} cannot be opened or created: {error.strerror}; set FAIRLAP_STORE to a file elsewhere"
        ) from None


def open_for_writing(path: Path) -> sqlite3.Connection:
    require_folder(path)
    with _reachable(path):
        require_regular(path)
        make_private_folder(path.parent)
        is_folder = path.is_dir()
    if is_folder:
        raise StoreError(f"{path} is a folder; FAIRLAP_STORE names the store's file")
    with readable_errors(path):
        _make_private(path)
        db = _connect(path)
        try:
            with _limited(db):
                require_own(db, path)
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def _limited(db: sqlite3.Connection) -> Iterator[None]:
    """Limit the time of looking at what a database is, whatever it is."""
    ends_s = time.monotonic() + _OPENED_WITHIN_S
    db.set_progress_handler(lambda: time.monotonic() > ends_s, 100_000)
    try:
        yield
    finally:
        db.set_progress_handler(None, 0)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a store that exists.

    One in a read-only place, or on a full disk, is only read: SQLite writes next to it even then.
    """
    require_store(path)
    try:
        return open_for_writing(path)
    except (StoreIsReadOnly, StoreIsFull):
        with readable_errors(path):
            return _connect_reading(path)


_looking = Lock()
_looked_at: dict[tuple[int, int] | None, bool] = {}


def _make_private(path: Path) -> None:
    """Make the store private before SQLite opens it, which gives its permissions to the files next to it.

    A file of something else keeps its own.
    """
    with _looking:
        known = _looked_at.get(_identity(path))
        ours = _may_be_ours(path) if known is None else known
        if ours:
            for end in ("-wal", "-shm", "-journal"):
                tighten(path.with_name(f"{path.name}{end}"))
            with suppress(OSError):  # SQLite says why a file cannot be made
                make_private_file(path)
        if (identity := _identity(path)) is not None:
            _looked_at[identity] = ours


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _may_be_ours(path: Path) -> bool:
    """Check that it is empty, is not there, or is a store by the header in it or in its log."""
    log = path.with_name(f"{path.name}-wal")
    return not _bytes_at(path, 0) or any(
        _bytes_at(file, place + _APPLICATION_ID_AT) == APPLICATION_ID.to_bytes(4, "big")
        for file, place in ((path, 0), (log, _FIRST_PAGE_OF_LOG_AT))
    )


def _bytes_at(file: Path, place: int) -> bytes:
    """Four, or none of a file that cannot be read; what follows says why."""
    try:
        with file.open("rb") as opened:
            opened.seek(place)
            return opened.read(4)
    except OSError:
        return b""


def _connect(path: Path, *, uri: str = "") -> sqlite3.Connection:
    db = sqlite3.connect(uri or path, timeout=_WAIT_FOR_OTHERS_S, isolation_level=None, uri=bool(uri))
    db.row_factory = _with_texts
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")  # a stored process survives a power cut
    except BaseException:
        db.close()
        raise
    return db


def _with_texts(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse bytes outside of samples: in a column of texts, where SQLite keeps them too, fairlap writes none."""
    if bytes in map(type, row):
        for (name, *_), value in zip(cursor.description, row, strict=True):
            if isinstance(value, bytes) and name not in ("ns", "content"):
                raise StoreError(f"the store has bytes in the column {str(name)[:80]!r}, where fairlap writes none")
    return row


def _connect_reading(path: Path) -> sqlite3.Connection:
    """SQLite keeps two files next to a store that even a reader writes; a store at rest can be read without them."""
    where = path.resolve().as_uri()
    unsettled = path.with_name(f"{path.name}-wal")
    at_rest = not unsettled.exists() or unsettled.stat().st_size == 0
    try:
        db = _connect(path, uri=f"{where}?mode=ro&immutable=1" if at_rest else f"{where}?mode=ro")
    except sqlite3.Error as error:
        if not at_rest and primary_code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise StoreIsReadOnly(
                f"{path} was left by a process that ended in the middle, and its folder may not be written;"
                f" copy it and {unsettled.name} to a folder of your own, and set FAIRLAP_STORE to the copy"
            ) from error
        raise
    try:
        version = _version(db, path)
        if version == 0:
            raise NoSuchRun(f"no run has been stored yet; runs will be stored in {path}")
        if version < len(STEPS):
            raise StoreIsReadOnly(
                f"{path} is of an older fairlap and may not be written, so that it cannot be brought up to date;"
                " copy it to a folder of your own, and set FAIRLAP_STORE to the copy"
            )
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    version = _version(db, path)
    if version == 0:
        _enter_write_ahead_mode(db)
    elif version < len(STEPS):
        _copy_beside(db, path, version)
    if version < len(STEPS):
        with writing(db):
            for number in range(_version(db, path), len(STEPS)):  # asked again: another process may have been quicker
                STEPS[number](db)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {FIRST_SCHEMA + len(STEPS) - 1}")
    if lacking_columns(db):
        with writing(db):
            add_columns(db, lacking_columns(db))


def require_own(db: sqlite3.Connection, path: Path) -> None:
    """Ours, or empty."""
    [[application]] = db.execute("PRAGMA application_id")
    [[tables]] = db.execute("SELECT count(*) FROM sqlite_master")
    if tables and application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of something else; set FAIRLAP_STORE to another file")
    _require_plain(db, path)


def _require_plain(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what fairlap does not make: it makes tables and indexes, and one view.

    A view, a trigger or a computed column of a store from elsewhere could do anything, or never end, when a table is
    read.
    """
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
        is_table = kind == "table" and not _VIRTUAL.match(str(sql))
        if is_table and any(hidden for *_, hidden in db.execute("SELECT * FROM pragma_table_xinfo(?)", (name,))):
            is_table = False
        if not (is_table or kind == "index" or (kind == "view" and sql == f"CREATE VIEW {RESULTS}")):
            raise StoreError(f"{path} was not made by fairlap: it has the {kind} {str(name)[:80]!r}; it is not read")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """How many of the steps the store has taken; 0 for an empty file."""
    require_own(db, path)
    [[schema]] = db.execute("PRAGMA user_version")
    newest = FIRST_SCHEMA + len(STEPS) - 1
    if schema > newest:
        raise StoreError(
            f"{path} was written by a newer fairlap (schema {schema}; this one knows up to {newest});"
            " update fairlap, or set FAIRLAP_STORE to another file",
            code="E_STORE_NEWER",
        )
    if 0 < schema < FIRST_SCHEMA:
        raise StoreError(
            f"{path} has schema {schema} of an early fairlap, which this version cannot read;"
            " move it away, or set FAIRLAP_STORE to another file",
            code="E_STORE_OLDER",
        )
    return max(0, int(schema) - FIRST_SCHEMA + 1)


def _enter_write_ahead_mode(db: sqlite3.Connection) -> None:
    """SQLite does not wait for others here as it does elsewhere, when two processes make the store at once."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first table; removed runs give their space back
    deadline_s = time.monotonic() + _WAIT_FOR_OTHERS_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def _copy_beside(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Consistent although others may write; gets its name only when complete."""
    copy = path.with_name(f"{path.name}.schema-{version}")
    if copy.exists():
        return
    unfinished = copy.with_name(f"{copy.name}.{os.getpid()}")
    try:
        make_private_file(unfinished)
        with closing(sqlite3.connect(unfinished)) as into:
            db.backup(into)
        unfinished.replace(copy)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Asks for the right to write at once, so that two writers wait instead of failing half-way."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself has rolled back after some errors
            db.execute("ROLLBACK")
        raise
