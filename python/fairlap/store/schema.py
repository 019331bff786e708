"""The tables of the store. Those of runs change by numbered steps; the table of rows follows the row's definition."""

from __future__ import annotations

from collections.abc import Callable

from fairlap.results.flat_row import Column, columns
from fairlap.store.database import Database
from fairlap.store.work_ids import give_works_ids

APPLICATION_ID = 0x66616972  # "fair", in the file's header: distinguishes a store from any other database

_SQL_TYPES = {"text": "TEXT", "whole": "INTEGER", "number": "REAL", "structure": "TEXT"}

_RUNS = """
CREATE TABLE runs (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    began_at    TEXT NOT NULL,     -- UTC, ISO 8601
    state       TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted', 'killed')),
    ended_early TEXT NOT NULL,     -- why; empty when every block of the plan ran
    processes   INTEGER NOT NULL,  -- that the plan has
    fairlap     TEXT NOT NULL,     -- the version that measured
    format      INTEGER NOT NULL,
    plan        TEXT NOT NULL,     -- this and the next two are JSON
    machine     TEXT NOT NULL,
    wall_s      TEXT NOT NULL
);
CREATE TABLE works (
    run       INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    place     INTEGER NOT NULL,
    label     TEXT NOT NULL,
    model     TEXT NOT NULL,
    batch     INTEGER NOT NULL,
    mode      TEXT NOT NULL,
    precision TEXT NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE INDEX works_by_model ON works (model, run);
CREATE TABLE contestants (
    run       INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    place     INTEGER NOT NULL,
    name      TEXT NOT NULL,
    framework TEXT NOT NULL,       -- or the program
    PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE INDEX contestants_by_name ON contestants (name, run);
CREATE INDEX contestants_by_framework ON contestants (framework, run);
CREATE TABLE processes (
    number     INTEGER PRIMARY KEY,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    block      INTEGER NOT NULL,
    contestant TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    process        TEXT NOT NULL,      -- the whole process as JSON
    UNIQUE (run, block, contestant)
);
CREATE TABLE samples (
    number   INTEGER PRIMARY KEY,
    process      INTEGER NOT NULL REFERENCES processes (number) ON DELETE CASCADE,
    quantity TEXT NOT NULL,
    count    INTEGER NOT NULL,
    crc32    INTEGER NOT NULL,     -- of the next; SQLite would not notice a bit that has changed in it
    ns       BLOB NOT NULL,        -- little-endian float64
    UNIQUE (process, quantity)
);
CREATE INDEX runs_running ON runs (id) WHERE state = 'running'
"""


RESULTS = (
    "results AS SELECT runs.state AS run_state, runs.ended_early AS run_ended_early, rows.*"
    " FROM rows JOIN runs ON runs.id = rows.run"
)


def _first_tables(db: Database) -> None:
    _execute_all(db, _RUNS)
    listed = ",\n    ".join(f'"{column.name}" {_sql_type(column.name, column.kind)}' for column in columns())
    db.execute(f"CREATE TABLE rows (\n    {listed}\n)")
    db.execute("CREATE INDEX rows_by_run ON rows (run)")
    db.execute("CREATE INDEX rows_by_work ON rows (workload, contestant)")
    db.execute(f"CREATE VIEW {RESULTS}")


def _profiles(db: Database) -> None:
    db.execute(
        "CREATE TABLE profiles ("
        " run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"
        " number INTEGER NOT NULL, contestant TEXT NOT NULL, work TEXT NOT NULL,"
        " profile TEXT NOT NULL,"  # the whole profile process as JSON
        " UNIQUE (run, number, contestant, work))"
    )


def _roofs_of_runs(db: Database) -> None:
    """As JSON; null where none were measured."""
    db.execute("ALTER TABLE runs ADD COLUMN roofs TEXT NOT NULL DEFAULT 'null'")


def _compilations(db: Database) -> None:
    db.execute(
        "CREATE TABLE compilations ("
        "number INTEGER PRIMARY KEY,"
        " run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"
        " work TEXT NOT NULL,"  # its id
        " contestant TEXT NOT NULL,"
        " compilation TEXT NOT NULL,"  # all of it as JSON
        " UNIQUE (run, work, contestant))"
    )


def _sweeps(db: Database) -> None:
    """Create the tables of sweeps, which spread the blocks of their runs over machines.

    A block that is stored has an entry, so that it can be stored once only.
    """
    db.execute(
        "CREATE TABLE sweeps ("
        "number INTEGER PRIMARY KEY,"
        " id TEXT NOT NULL UNIQUE,"
        " began_at TEXT NOT NULL,"  # UTC, ISO 8601
        " machines TEXT NOT NULL)"  # 'alike' or 'every'
    )
    db.execute(
        "CREATE TABLE sweep_runs ("
        "number INTEGER PRIMARY KEY,"
        " sweep INTEGER NOT NULL REFERENCES sweeps (number) ON DELETE CASCADE,"
        " run INTEGER NOT NULL UNIQUE REFERENCES runs (number) ON DELETE CASCADE,"
        " request TEXT NOT NULL,"  # the name of its file
        " machine TEXT NOT NULL)"  # the kind of machine that may run its blocks, or the one machine
    )
    db.execute(
        "CREATE TABLE sweep_blocks ("
        "run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"
        " block INTEGER NOT NULL,"
        " host TEXT NOT NULL,"  # the machine that ran it
        " wall_s TEXT NOT NULL,"  # JSON
        " PRIMARY KEY (run, block)) WITHOUT ROWID"
    )


def _work_ids(db: Database) -> None:
    db.execute("ALTER TABLE works ADD COLUMN id TEXT")
    add_columns(db, lacking_columns(db))
    db.execute("CREATE INDEX works_by_id ON works (id, run)")
    give_works_ids(db)


def _notes(db: Database) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'")  # JSON


def _foreign_points(db: Database) -> None:
    db.execute(
        "CREATE TABLE foreign_points ("
        "number INTEGER PRIMARY KEY,"
        " identity TEXT NOT NULL UNIQUE,"  # SHA-256 of the point, so that it is stored once
        " tool TEXT NOT NULL,"
        " project TEXT NOT NULL,"
        " source TEXT NOT NULL,"  # the file or folder that it was read from
        " imported_at TEXT NOT NULL,"  # UTC, ISO 8601
        " point TEXT NOT NULL)"  # all of it as JSON
    )
    db.execute("CREATE INDEX foreign_points_by_tool ON foreign_points (tool)")


FIRST_SCHEMA = 3  # schemas 1 and 2 were never released
STEPS: list[Callable[[Database], None]] = [
    _first_tables, _profiles, _roofs_of_runs, _compilations, _sweeps, _work_ids, _notes, _foreign_points
]  # fmt: skip
"""Each leads from one schema version to the next. One that has been released is never changed."""


def lacking_columns(db: Database) -> list[Column]:
    """Those that the row has got since the store was made."""
    there = {column[0] for column in db.execute("SELECT * FROM rows LIMIT 0").description}
    return [column for column in columns() if column.name not in there]


def add_columns(db: Database, lacking: list[Column]) -> None:
    """Rows that are there already have nothing in them."""
    for column in lacking:
        db.execute(f'ALTER TABLE rows ADD COLUMN "{column.name}" {_sql_type(column.name, column.kind)}')


def _sql_type(name: str, kind: str) -> str:
    if name == "run":
        return "TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE"
    return _SQL_TYPES[kind]


def _execute_all(db: Database, script: str) -> None:
    """One by one: executescript() would end the transaction that a step runs in."""
    for statement in script.split(";\n"):
        db.execute(statement)
