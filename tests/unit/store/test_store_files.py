"""An older, newer, damaged or read-only store: what is whole is read, and the rest is said with what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import FairlapError
from fairlap.store import opening
from fairlap.store import schema as store_schema
from fairlap.store.errors import NoSuchRun, StoreError, StoreIsDamaged, StoreIsReadOnly
from fairlap.store.recording import begin_recording
from fairlap.store.repair import repair_store
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole, recording_of, samples_of

_NOBODY = 65534
NEWEST = store_schema.FIRST_SCHEMA + len(store_schema.STEPS) - 1


def with_a_remark(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN remark TEXT NOT NULL DEFAULT 'none'")


def half_way_wrong(db: sqlite3.Connection) -> None:
    with_a_remark(db)
    db.execute("INSERT INTO no_such_table VALUES (1)")


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_an_older_store_is_brought_up_to_date_after_a_copy_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        run_id = keep_whole(store, a_run())
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, with_a_remark])
    with open_store(path, reading=True) as store:
        assert store.load(run_id).processes == a_run().processes
    assert version_of(path) == NEWEST + 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT remark FROM runs").fetchall() == [("none",)]
    copy = tmp_path / f"runs.sqlite.schema-{len(store_schema.STEPS)}"
    assert sorted(tmp_path.iterdir()) == [path, copy]
    assert version_of(copy) == NEWEST
    monkeypatch.undo()
    with open_store(copy) as store:
        assert store.load(run_id).processes == a_run().processes


def test_a_store_of_the_first_schema_gets_all_that_was_added_since(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        run_id = keep_whole(store, a_run())
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE profiles")
        for column in ("roofs", "note", "tags"):
            db.execute(f"ALTER TABLE runs DROP COLUMN {column}")
        db.execute("DROP INDEX works_by_id")
        db.execute("ALTER TABLE works DROP COLUMN id")
        for table in ("compilations", "sweep_blocks", "sweep_runs", "sweeps", "foreign_points"):
            db.execute(f"DROP TABLE {table}")
        db.execute(f"PRAGMA user_version = {store_schema.FIRST_SCHEMA}")
        db.commit()
    with open_store(path) as store:
        run = store.load(run_id)
    assert (run.profiles, run.compilations, run.roofs) == ([], [], None)
    assert (run.note, run.tags) == ("", ())
    assert run.processes == a_run().processes
    assert version_of(path) == NEWEST


def test_a_step_that_fails_leaves_the_older_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        keep_whole(store, a_run())
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, half_way_wrong])
    with pytest.raises(StoreError, match="runs"):
        open_store(path)
    monkeypatch.undo()
    assert version_of(path) == NEWEST
    with open_store(path) as store:
        assert store.load("last").processes == a_run().processes
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.OperationalError):
        db.execute("SELECT remark FROM runs")


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        keep_whole(store, a_run())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    for reading in (True, False):
        with pytest.raises(StoreError, match="99") as refused:
            open_store(path, reading=reading)
        assert refused.value.code == "E_STORE_NEWER"
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError) as refused:
        open_store(path)
    assert refused.value.code == "E_STORE"
    assert path.read_bytes() == before


def test_a_file_of_something_else_keeps_its_mode_and_an_empty_one_becomes_private(tmp_path: Path) -> None:
    text, empty = tmp_path / "notes.txt", tmp_path / "empty"
    text.write_text("notes")
    empty.touch()
    for file in (text, empty):
        file.chmod(0o644)
    with pytest.raises(StoreIsDamaged):
        open_store(text)
    open_store(empty).close()
    assert [file.stat().st_mode & 0o777 for file in (text, empty)] == [0o644, 0o600]


def test_a_folder_in_the_place_of_the_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)) as refused:
        open_store(tmp_path)
    assert refused.value.code == "E_STORE"
    (tmp_path / "file").write_text("")
    with pytest.raises(FairlapError, match="file"):
        open_store(tmp_path / "file" / "runs.sqlite")


def damage(path: Path, share: float, pages: int = 4) -> None:
    """Overwrite pages that far into the file."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(int(size * share) // 4096 * 4096)
        file.write(b"\xa5" * 4096 * pages)


def a_store_of(path: Path, runs: int) -> list[str]:
    with open_store(path) as store:
        return [keep_whole(store, a_run()) for _ in range(runs)]


@pytest.mark.parametrize("content", [b"nonsense" * 1000, b"SQLite format 3\x00" + b"\x01" * 8000])
def test_a_file_that_is_no_store_says_so_and_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(content)
    for reading in (True, False):
        with pytest.raises(StoreIsDamaged, match="`fairlap runs repair`"):
            open_store(path, reading=reading)
    with pytest.raises(StoreIsDamaged, match=str(path)):
        repair_store(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def twelve_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"
    return path, a_store_of(path, 12)


@pytest.mark.slow_but("0.3", "0.9")
@pytest.mark.parametrize("share", [0.15, 0.3, 0.5, 0.7, 0.9])
def test_what_is_whole_in_a_damaged_store_is_salvaged(
    tmp_path: Path, share: float, twelve_runs: tuple[Path, list[str]]
) -> None:
    whole, ids = twelve_runs
    path = Path(shutil.copy(whole, tmp_path))
    damage(path, share)
    spoilt = path.read_bytes()
    repaired = repair_store(path)
    assert repaired.damaged is not None
    assert repaired.damaged.read_bytes() == spoilt
    assert set(repaired.runs) <= set(ids)
    assert repaired.processes + repaired.strays > 0.8 * 12 * 16
    run = a_run()
    with open_store(path) as store:
        assert {summary.run for summary in store.runs()} == set(repaired.runs)
        processes = 0
        for run_id in repaired.runs:
            kept = store.load(run_id).processes
            processes += len(kept)
            for process in kept:
                assert process in run.processes
                for name, values in store.samples(run_id, process.block, process.contestant).items():
                    assert values.tobytes() == samples_of(process)[name].tobytes()
        assert processes == repaired.processes
        keep_whole(store, a_run())
        assert len(store.runs()) == len(repaired.runs) + 1


@pytest.mark.slow
def test_damage_met_while_reading_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 12)
    damage(path, 0.4, pages=path.stat().st_size // 2 // 4096)
    with open_store(path, reading=True) as store, pytest.raises(StoreIsDamaged):
        [store.load(summary.run) for summary in store.runs()]


def test_a_bit_that_has_changed_in_samples_is_noticed_and_only_these_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 1)
    first, second = a_run().processes[:2]
    with closing(sqlite3.connect(path)) as db:
        [[raw]] = db.execute("SELECT ns FROM samples WHERE number = 1").fetchall()
    content = path.read_bytes()
    assert content.count(raw) == 1
    path.write_bytes(content.replace(raw, raw[:-1] + bytes([raw[-1] ^ 1])))
    with open_store(path, reading=True) as store:
        assert len(store.samples("last", second.block, second.contestant)) == 2
        with pytest.raises(StoreIsDamaged, match="samples"):
            store.samples("last", first.block, first.contestant)
        with pytest.raises(StoreIsDamaged):
            store.export_to("last", tmp_path / "run.json")
    assert repair_store(path).samples == 31
    with open_store(path, reading=True) as store:
        assert list(store.samples("last", first.block, first.contestant)) == ["host_issue_ns"]


def test_a_whole_store_has_nothing_to_repair_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 2)
    before = path.read_bytes()
    assert repair_store(path).damaged is None
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]


@contextmanager
def somebody_else() -> Iterator[None]:
    """Become nobody for a while: the superuser may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may look into; those of pytest are for their owner alone."""
    made = Path(tempfile.mkdtemp(prefix="fairlap-test-"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def test_a_store_in_a_read_only_folder_can_be_read_and_says_why_it_cannot_be_written(folder: Path) -> None:
    path = folder / "runs.sqlite"
    [run_id] = a_store_of(path, 1)
    path.chmod(0o444)
    folder.chmod(0o555)
    with somebody_else():
        with open_store(path, reading=True) as store:
            assert msgspec.json.encode(store.load(run_id).processes) == msgspec.json.encode(a_run().processes)
            assert store.rows(run_id)[0].contestant == "jax:fast"
            assert store.runs()[0].state == "finished"
            with pytest.raises(StoreIsReadOnly):
                store.remove(run_id)
        with pytest.raises(StoreIsReadOnly, match=r"runs\.sqlite.*FAIRLAP_STORE"), open_store(path) as store:
            begin_recording(store, a_run().plan, {}, "")
        with pytest.raises(StoreIsReadOnly):
            open_store(folder / "new.sqlite")
        with pytest.raises(StoreError) as refused:
            open_store(folder / "sub" / "new.sqlite")
        assert refused.value.code == "E_STORE"


def test_a_store_that_is_not_there_and_cannot_be_made_is_no_empty_one(folder: Path) -> None:
    with pytest.raises(NoSuchRun):
        open_store(folder / "sub" / "new.sqlite", reading=True)
    assert list(folder.iterdir()) == []
    (folder / "file").touch()
    with pytest.raises(StoreError, match=r"Not a directory.*FAIRLAP_STORE") as raised:
        open_store(folder / "file" / "new.sqlite", reading=True)
    assert raised.value.code == "E_STORE"
    folder.chmod(0o555)
    with somebody_else(), pytest.raises(StoreIsReadOnly, match="FAIRLAP_STORE"):
        open_store(folder / "sub" / "new.sqlite", reading=True)
    folder.chmod(0o600)
    with somebody_else(), pytest.raises(StoreIsReadOnly, match="FAIRLAP_STORE"):
        open_store(folder / "new.sqlite", reading=True)


def test_a_store_left_by_a_killed_process_in_a_folder_that_became_read_only_says_how_to_read_it(folder: Path) -> None:
    path, away = folder / "runs.sqlite", folder / "away"
    away.mkdir()
    with open_store(path) as store:
        recording = recording_of(store, a_run(), processes=3)
        for end in ("", "-wal"):
            shutil.copy(folder / f"runs.sqlite{end}", away)
        recording.end({})
    for file in away.iterdir():
        file.chmod(0o444)
    away.chmod(0o555)
    with somebody_else(), pytest.raises(StoreIsReadOnly, match=r"runs\.sqlite-wal"):
        open_store(away / "runs.sqlite", reading=True)
    away.chmod(0o755)
    for file in away.iterdir():
        file.chmod(0o644)
    with open_store(away / "runs.sqlite", reading=True) as store:
        assert len(store.load("last").processes) == 3


def test_an_older_store_that_may_not_be_written_says_how_to_read_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "runs.sqlite"
    a_store_of(path, 1)
    path.chmod(0o444)
    folder.chmod(0o555)
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, with_a_remark])
    with somebody_else(), pytest.raises(StoreIsReadOnly, match="copy"):
        open_store(path, reading=True)


def test_a_store_of_an_unreleased_schema_is_refused_by_its_code(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {store_schema.FIRST_SCHEMA - 1}")
    with pytest.raises(StoreError) as refused:
        open_store(path)
    assert refused.value.code == "E_STORE_OLDER"
