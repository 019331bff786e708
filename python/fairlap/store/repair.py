"""Repair a damaged store: move everything that can still be read into a new one.

SQLite stops at the first damaged page, and its own recovery is part of its shell, not of its library. Tables are read
from both ends up to the damage, and what is between by number, one entry at a time, so that every intact page is read.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.machine.files.private_files import tighten
from fairlap.printable import joined_lines
from fairlap.store.errors import StoreIsDamaged, readable_errors
from fairlap.store.file_store import Store
from fairlap.store.opening import open_for_writing, require_own, require_store, writing
from fairlap.store.work_ids import give_works_ids

_MOST_TRIED_BETWEEN = 1_000_000
_SUFFIXES_OF_LOGS = ("-wal", "-shm")


@dataclass(frozen=True)
class Repair:
    store: Path
    damaged: Path | None  # where the damaged file is now; None when there was nothing to do
    runs: tuple[str, ...] = ()
    processes: int = 0
    planned_processes: int = 0
    samples: int = 0  # processes times quantities
    strays: int = 0  # processes whose run is lost

    @property
    def text(self) -> str:
        if self.damaged is None:
            return f"{self.store} is intact; nothing to repair"
        runs, planned = (
            quantity_text.count(len(self.runs), "run"),
            quantity_text.count(self.planned_processes, "planned process"),
        )
        recovered = f"{runs} with {self.processes} of {planned}"
        lines = [f"repaired {self.store}: {recovered}, {quantity_text.count(self.samples, 'set')} of samples"]
        if self.strays:
            lines.append(f"lost: the plans of {quantity_text.count(self.strays, 'more process')}")
        lines.append(f"the damaged file is now {self.damaged}; exported runs can be imported again")
        return joined_lines(lines)


def repair_store(path: Path) -> Repair:
    """Repair a store; a file of which no run can be read is left alone: it may not be a store."""
    require_store(path)
    with tempfile.TemporaryDirectory(prefix="fairlap-repair-", dir=path.parent) as folder:
        copy = Path(folder) / "damaged.sqlite"  # reading changes the file, and the damaged one is evidence
        for end in ("", *_SUFFIXES_OF_LOGS):
            if (file := path.with_name(f"{path.name}{end}")).exists():
                shutil.copyfile(file, copy.with_name(f"{copy.name}{end}"))
        _require_own(copy, path)
        if _is_whole(copy):
            return Repair(path, None)
        new = Path(folder) / "new.sqlite"
        with Store(new, open_for_writing(new)) as store:
            with readable_errors(new):
                strays = _move(copy, new)
            runs = _keep_readable(store)
            processes, planned, samples = _counted(new)
        if not runs:
            raise StoreIsDamaged(
                f"no run can be read in {path}, and it is left as it is;"
                " move it away to begin a new store, or set FAIRLAP_STORE to another file"
            )
        aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        for end in ("", *_SUFFIXES_OF_LOGS):
            if (file := path.with_name(f"{path.name}{end}")).exists():
                tighten(file)
                file.replace(aside.with_name(f"{aside.name}{end}"))
        new.replace(path)
    return Repair(path, aside, tuple(runs), processes, planned, samples, strays)


def _require_own(copy: Path, path: Path) -> None:
    """Refuse a database of another program; one that is unreadable may be a damaged store."""
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(copy)) as db:
        require_own(db, path)


def _is_whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as db:
            if [line for (line,) in db.execute("PRAGMA integrity_check(1)")] != ["ok"]:
                return False
            for _ in db.execute(
                "SELECT plan, machine, wall_s FROM runs UNION ALL SELECT process, '', '' FROM processes"
            ):
                pass  # reading an invalid text raises
            return all(
                isinstance(raw, bytes) and crc32(raw) == check
                for raw, check in db.execute("SELECT ns, crc32 FROM samples")
            )
    except sqlite3.DatabaseError:
        return False


_TABLES = (
    "runs",
    "works",
    "contestants",
    "processes",
    "samples",
    "profiles",
    "compilations",
    "sweeps",
    "sweep_runs",
    "sweep_blocks",
    "foreign_points",
)
_FORGET_BLOCKS = (  # of sweeps, of which a process is lost: they are run again
    "DELETE FROM sweep_blocks WHERE (SELECT count(*) FROM processes WHERE processes.run = sweep_blocks.run"
    " AND processes.block = sweep_blocks.block)"
    " < (SELECT count(*) FROM contestants WHERE contestants.run = sweep_blocks.run)"
)


def _move(damaged: Path, new: Path) -> int:
    """Under the same numbers, so that processes find their runs. How many processes have lost theirs."""
    strays = 0
    with closing(sqlite3.connect(damaged)) as old, closing(sqlite3.connect(new, isolation_level=None)) as db:
        old.text_factory = lambda raw: raw.decode(errors="replace")
        db.execute("PRAGMA foreign_keys = ON")
        with writing(db):
            for table in _TABLES:
                for names, cells in _entries(old, table):
                    if table == "samples" and not _is_as_written(names, cells):
                        continue
                    try:
                        db.execute(
                            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(cells))})", cells
                        )
                    except sqlite3.IntegrityError:
                        strays += table == "processes"
            give_works_ids(db)
            db.execute(_FORGET_BLOCKS)
    return strays


def _is_as_written(names: list[str], cells: tuple[object, ...]) -> bool:
    entry = dict(zip(names, cells, strict=True))
    raw = entry["ns"]
    return isinstance(raw, bytes) and crc32(raw) == entry["crc32"]


def _entries(old: sqlite3.Connection, table: str) -> Iterator[tuple[list[str], tuple[object, ...]]]:
    try:
        [names] = [[column[1] for column in old.execute(f"PRAGMA table_info({table})")]]
    except sqlite3.DatabaseError:
        return
    if not names:  # a table that an older store lacks
        return
    key = names[0]  # the number, or the run's
    listed = ", ".join(names)
    for number in _numbers(old, table, key):
        try:
            for cells in old.execute(f"SELECT {listed} FROM {table} NOT INDEXED WHERE {key} = ?", (number,)).fetchall():
                yield names, cells
        except sqlite3.DatabaseError:
            continue


def _numbers(old: sqlite3.Connection, table: str, key: str) -> list[int]:
    upwards = _until_damaged(old, f"SELECT {key} FROM {table} NOT INDEXED ORDER BY {key}")
    downwards = _until_damaged(old, f"SELECT {key} FROM {table} NOT INDEXED ORDER BY {key} DESC")
    first, last = max(upwards, default=0) + 1, min(downwards, default=0)
    between = range(first, min(last, first + _MOST_TRIED_BETWEEN))
    return sorted({*upwards, *between, *downwards})


def _until_damaged(old: sqlite3.Connection, query: str) -> list[int]:
    found: list[int] = []
    try:
        for (number,) in old.execute(query):
            if isinstance(number, int):
                found.append(number)
    except sqlite3.DatabaseError:
        pass
    return found


def _keep_readable(store: Store) -> list[str]:
    """Leave out runs whose text is damaged; compute the rows of the others."""
    kept = []
    for summary in store.runs():
        try:
            store.compute_rows(summary.run)
        except (FairlapError, ValueError, LookupError):
            store.remove(summary.run)
            continue
        kept.append(summary.run)
    return kept


def _counted(path: Path) -> tuple[int, int, int]:
    """Count recorded processes, planned processes, and sets of samples."""
    counts = "(SELECT count(*) FROM processes), (SELECT total(processes) FROM runs), (SELECT count(*) FROM samples)"
    with closing(sqlite3.connect(path)) as db:
        [[processes, planned, samples]] = db.execute(f"SELECT {counts}")
    return int(processes), int(planned), int(samples)
