"""A store that another program made or changed ends in an answer or in one line with a code."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import invoke
from fairlap.errors import FairlapError
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
COMMANDS = [
    ("runs",),
    ("runs", "--json"),
    ("show", "last"),
    ("export", "last"),
    ("report", "last", "-o", "{}/report.html"),
    ("bundle", "last", "-o", "{}/b.fairlap", "--no-page"),
    ("diff", "last", "last"),
    ("history", "mlp"),
    ("stale",),
    ("across", "last", "last"),
    ("recipe", "last", "-o", "{}/recipe"),
    ("runs", "export", "last", "{}/export.json"),
    ("rerun", "last"),
    ("compare", "--resume", "last"),
    ("runs", "repair"),
    ("runs", "remove", "last", "--yes"),
]

Change = Callable[[sqlite3.Connection], object]


def statement(text: str) -> Change:
    return lambda db: db.executescript(text)


def recreate(table: str, how: str) -> Change:
    return lambda db: db.executescript(f"PRAGMA foreign_keys=OFF; DROP VIEW results; DROP TABLE {table}; {how}")


HOSTILE: dict[str, Change] = {
    "an id with a path": statement("UPDATE runs SET id = '../../x', state = 'running'"),
    "an id of bytes": statement("UPDATE runs SET id = x'ff00'"),
    "bytes for a plan": statement("UPDATE runs SET plan = x'00ff'"),
    "bytes for a state": statement("PRAGMA ignore_check_constraints = ON; UPDATE runs SET state = x'00'"),
    "another state": statement("PRAGMA ignore_check_constraints = ON; UPDATE runs SET state = 'x'"),
    "text for a number of processes": statement("UPDATE runs SET processes = 'many'"),
    "text for a format": statement("UPDATE runs SET format = 'x'"),
    "a huge number of processes": statement("UPDATE runs SET processes = 9e300"),
    "no number of processes": statement("UPDATE runs SET processes = -1"),
    "a beginning that is no time": statement("UPDATE runs SET began_at = 'yesterday'"),
    "bytes for a version": statement("UPDATE runs SET fairlap = x'80'"),
    "a machine that is no object": statement("UPDATE runs SET machine = '[1]'"),
    "times that are text": statement('UPDATE runs SET wall_s = \'{"a": "b"}\''),
    "a plan that is another": statement("UPDATE runs SET plan = '{}'"),
    "a deeply nested plan": lambda db: db.execute("UPDATE runs SET plan = ?", ("[" * 100_000,)),
    "processes that are none": statement("UPDATE processes SET process = 'null'"),
    "processes of bytes": statement("UPDATE processes SET process = x'7b7d'"),
    "processes without end": statement("UPDATE processes SET process = '{'"),
    "blocks that are texts": statement("UPDATE processes SET block = contestant || block"),
    "samples that are text": statement("UPDATE samples SET ns = 'abc'"),
    "samples of null length": statement("UPDATE samples SET ns = x'', count = -5, crc32 = 0"),
    "a checksum of text": statement("UPDATE samples SET crc32 = 'x'"),
    "quantities that are bytes": statement("UPDATE samples SET quantity = number || x'ff'"),
    "rows of bytes": statement("UPDATE rows SET contestant = x'00', workload = x'00'"),
    "rows of text": statement("UPDATE rows SET batch = 'x'"),
    "works of bytes": statement("UPDATE works SET label = x'00', model = x'00'"),
    "contestants of bytes": statement("UPDATE contestants SET name = x'00', framework = x'00'"),
    "text that is not UTF-8": statement("UPDATE runs SET fairlap = CAST(x'80ff' AS TEXT)"),
    "an endless view for runs": recreate(
        "runs",
        f"CREATE VIEW runs AS {ENDLESS} i AS number, '20260101-000000-aaa' AS id, '' AS began_at, 'finished' AS state,"
        " '' AS ended_early, 1 AS processes, '1' AS fairlap, 3 AS format, '{}' AS plan, '{}' AS machine,"
        " '{}' AS wall_s, 'null' AS roofs FROM n",
    ),
    "an endless view for samples": recreate(
        "samples", f"CREATE VIEW samples AS {ENDLESS} i AS number, i AS process, 'q' AS quantity FROM n"
    ),
    "an endless view for results": statement(f"DROP VIEW results; CREATE VIEW results AS {ENDLESS} i FROM n"),
    "a trigger": statement("CREATE TRIGGER t AFTER DELETE ON runs BEGIN UPDATE runs SET id = 'x'; END"),
    "a virtual table": statement("CREATE VIRTUAL TABLE v USING rtree(a, b, c)"),
    "a computed column": statement("ALTER TABLE rows ADD COLUMN zz AS (hex(zeroblob(500000000)))"),
    "no table of processes": statement("PRAGMA foreign_keys=OFF; DROP TABLE processes"),
    "no column of plans": recreate("runs", "CREATE TABLE runs (number INTEGER PRIMARY KEY, id TEXT, state TEXT)"),
    "an index of an expression": statement("CREATE INDEX x ON runs(hex(plan))"),
    "a schema of its own": statement("PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = 'CREATE TABLE runs'"),
    "a negative schema": statement("PRAGMA user_version = -5"),
    "a schema of zero": statement("PRAGMA user_version = 0"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "runs.sqlite"
    with open_store(path) as store:
        keep_whole(store, a_run())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


@pytest.mark.slow_but(
    "an id with a path",
    "bytes for a plan",
    "a deeply nested plan",
    "an endless view for runs",
    "a trigger",
    "a virtual table",
    "rows of text",
    "samples that are text",
)
@pytest.mark.parametrize("what", HOSTILE)
def test_every_command_ends_in_an_answer_or_in_one_line(
    what: str, good: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deep" / "deeper"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    wrong = []
    for number, words in enumerate(COMMANDS):
        path = folder / f"runs-{number}.sqlite"  # of its own: an error that is kept may hold the last one open
        monkeypatch.setenv("FAIRLAP_STORE", str(path))
        path.write_bytes(good)
        with closing(sqlite3.connect(path)) as db:
            try:
                HOSTILE[what](db)
            except sqlite3.OperationalError as lack:
                pytest.skip(f"SQLite of this Python cannot do it: {lack}")
            db.commit()
        began_s = time.monotonic()
        result = invoke(*(word.replace("{}", str(folder / str(number))) for word in words))
        error = result.exception
        if not (error is None or isinstance(error, (FairlapError, SystemExit))):
            wrong.append((words, type(error).__name__, str(error)[:200]))
        if isinstance(error, FairlapError) and len(str(error).splitlines()) > 2:
            wrong.append((words, "lines", str(error)))
        if time.monotonic() - began_s > 20:
            wrong.append((words, "time", ""))
    assert wrong == []
    assert [each.name for each in tmp_path.iterdir()] == ["deep"]
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["deeper"]


@pytest.mark.parametrize(
    "what", [name for name in HOSTILE if "view" in name or name in ("a trigger", "a virtual table")]
)
def test_views_triggers_and_virtual_tables_are_refused(what: str, good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(good)
    with closing(sqlite3.connect(path)) as db:
        HOSTILE[what](db)
        db.commit()
    for reading in (True, False):
        with pytest.raises(FairlapError) as refused:
            open_store(path, reading=reading)
        assert refused.value.code == "E_STORE"
