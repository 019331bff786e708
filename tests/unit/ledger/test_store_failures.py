"""A killed writer, a full disk, two writers, an older, newer, damaged or read-only store: nothing finished is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fairlap.errors import FairlapError, WrongRequest
from fairlap.ledger import opening, store_schema
from fairlap.ledger.salvage import salvage
from fairlap.ledger.store import open_store
from fairlap.ledger.store_errors import (
    StoreError,
    StoreIsBusy,
    StoreIsDamaged,
    StoreIsFull,
    StoreIsNewer,
    StoreIsReadOnly,
)
from fairlap.race.exact_json import exact_json
from runs_for_rows import a_run
from runs_in_store import keep_whole, recording_of, samples_of

_HERE = Path(__file__).parent
_NOBODY = 65534


def started(code: str, store: Path) -> subprocess.Popen[str]:
    """A process of its own that finds what these tests use."""
    path = os.pathsep.join([str(_HERE), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(store)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


_RECORDS_SIX_AND_WAITS = """
import sys
from pathlib import Path
from fairlap.ledger.store import open_store
from runs_for_rows import a_run
from runs_in_store import recording_of
recording = recording_of(open_store(Path(sys.argv[1])), a_run(), laps=6)
print(recording.run, flush=True)
sys.stdin.read()
"""


@pytest.mark.sanitized
def test_a_killed_process_loses_nothing_that_had_ended(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_RECORDS_SIX_AND_WAITS, path)
    assert writer.stdout is not None
    run_id = writer.stdout.readline().strip()
    with open_store(path, reading=True) as store:
        assert store.state(run_id) == "running"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    with open_store(path, reading=True) as store:
        assert [summary.state for summary in store.runs()] == ["killed"]
        assert store.load(run_id).laps == a_run().laps[:6]
        for lap in a_run().laps[:6]:
            found = store.samples(run_id, lap.block, lap.contestant)
            assert {name: values.tobytes() for name, values in found.items()} == {
                name: values.tobytes() for name, values in samples_of(lap).items()
            }
        assert [row.processes for row in store.rows(run_id)] == [3, 3]


@pytest.mark.sanitized
def test_the_next_recording_settles_what_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_RECORDS_SIX_AND_WAITS, path)
    assert writer.stdout is not None
    run_id = writer.stdout.readline().strip()
    writer.kill()
    writer.communicate()
    with open_store(path) as store:
        recording = recording_of(store, a_run(), laps=2)
        with closing(sqlite3.connect(path)) as db:
            assert dict(db.execute("SELECT id, state FROM runs")) == {run_id: "killed", recording.run: "running"}
            assert db.execute("SELECT count(*) FROM results WHERE run = ?", (run_id,)).fetchone() == (2,)
        recording.end({})
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]


_FILLS_THE_DISK = """
import resource, sys
from pathlib import Path
from fairlap.ledger.store import open_store
from fairlap.ledger.store_errors import StoreIsFull
from runs_for_rows import a_run
from runs_in_store import samples_of
run = a_run()
store = open_store(Path(sys.argv[1]))
recording = store.begin(run.plan, run.machine, run.began_at)
most = 600_000
resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
for number, lap in enumerate(run.laps):
    try:
        recording.keep(lap, samples_of(lap, 10_000))
    except StoreIsFull as full:
        said = str(full)
print(recording.not_kept, len(run.laps), said, sep="|", flush=True)
if sys.stdin.readline():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    recording.end(run.wall_s)
"""


@pytest.mark.sanitized
@pytest.mark.parametrize("space_is_made", [False, True])
def test_on_a_full_disk_all_that_fitted_is_kept_and_the_rest_when_there_is_space(
    tmp_path: Path, space_is_made: bool
) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_FILLS_THE_DISK, path)
    assert writer.stdout is not None
    waiting, of, said = writer.stdout.readline().strip().split("|")
    assert 0 < int(waiting) < int(of)
    assert "is the disk full" in said
    assert "what was kept before is whole" in said.lower()
    writer.communicate("go on\n" if space_is_made else None)
    run = a_run()
    kept = int(of) if space_is_made else int(of) - int(waiting)
    with open_store(path, reading=True) as store:
        assert store.state("last") == ("finished" if space_is_made else "killed")
        assert store.load("last").laps == run.laps[:kept]
        last = run.laps[kept - 1]
        assert store.samples("last", last.block, last.contestant)["wall_ns"][:5].tolist() == (
            samples_of(last, 10_000)["wall_ns"][:5].tolist()
        )


def test_a_store_that_may_grow_no_more_says_that_the_disk_is_full(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        run = a_run()
        recording = recording_of(store, run, laps=2)
        [[pages]] = store._db.execute("PRAGMA page_count").fetchall()
        store._db.execute(f"PRAGMA max_page_count = {pages + 3}").fetchall()
        with pytest.raises(StoreIsFull, match=r"the disk is full: .*runs\.sqlite could not be written"):
            recording.keep(run.laps[2], samples_of(run.laps[2], 10_000))
        assert store.load("last").laps == run.laps[:2]
        store._db.execute("PRAGMA max_page_count = 100000").fetchall()
        recording.keep(run.laps[3], samples_of(run.laps[3]))
        assert store.load("last").laps == run.laps[:4]


_RECORDS_A_RUN = """
import sys
from pathlib import Path
from fairlap.ledger.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    with open_store(Path(sys.argv[1])) as store:
        print(keep_whole(store, a_run()), flush=True)
"""


@pytest.mark.sanitized
def test_several_writers_at_once_all_keep_everything(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "runs.sqlite"
    writers = [started(_RECORDS_A_RUN, path) for _ in range(4)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    ids = {run_id for writer in writers for run_id in writer.communicate()[0].split()}
    assert len(ids) == 12
    with open_store(path, reading=True) as store:
        assert {summary.run for summary in store.runs()} == ids
        assert {(summary.state, summary.laps) for summary in store.runs()} == {("finished", 16)}
        for run_id in ids:
            assert store.load(run_id).laps == a_run().laps


def test_a_writer_that_never_lets_go_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setattr(opening, "_WAIT_FOR_OTHERS_S", 0.1)
    with open_store(path) as store, closing(sqlite3.connect(path)) as other:
        recording = recording_of(store, a_run(), laps=1)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreIsBusy, match=r"another process keeps writing to .*runs\.sqlite"):
            recording.keep(a_run().laps[1])
        other.execute("ROLLBACK")
        recording.keep(a_run().laps[2])
        assert store.load("last").laps == a_run().laps[:3]


def with_a_note(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")


def half_way_wrong(db: sqlite3.Connection) -> None:
    with_a_note(db)
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
    before = path.read_bytes()
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, with_a_note])
    with open_store(path, reading=True) as store:
        assert store.load(run_id).laps == a_run().laps
    assert version_of(path) == len(store_schema.STEPS) + 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT note FROM runs").fetchall() == [("none",)]
    copy = tmp_path / "runs.sqlite.schema-1"
    assert sorted(tmp_path.iterdir()) == [path, copy]
    assert version_of(copy) == 1
    monkeypatch.undo()
    with open_store(copy) as store:
        assert store.load(run_id).laps == a_run().laps
    assert len(before) > 0


def test_a_step_that_fails_leaves_the_older_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        keep_whole(store, a_run())
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, half_way_wrong])
    with pytest.raises(StoreError, match="no such table"):
        open_store(path)
    monkeypatch.undo()
    assert version_of(path) == 1
    with open_store(path) as store:
        assert store.load("last").laps == a_run().laps
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.OperationalError, match="no such column"):
        db.execute("SELECT note FROM runs")


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        keep_whole(store, a_run())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    for reading in (True, False):
        with pytest.raises(
            StoreIsNewer, match=r"a newer fairlap \(schema 99; this one knows up to 1\); update fairlap"
        ):
            open_store(path, reading=reading)
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(WrongRequest, match="a database of something else"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_folder_in_the_place_of_the_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(FairlapError, match="is a folder"):
        open_store(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FairlapError, match="cannot be made"):
        open_store(tmp_path / "file" / "runs.sqlite")


def damage(path: Path, share: float, pages: int = 4) -> None:
    """Overwrites pages that far into the file."""
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
        with pytest.raises(StoreIsDamaged, match=r"is damaged .*\n`fairlap runs salvage` moves"):
            open_store(path, reading=reading)
    told = salvage(path)
    assert told.runs == ()
    assert told.damaged is not None
    assert told.damaged.read_bytes() == content
    with open_store(path) as store:
        assert store.runs() == []


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_what_is_whole_in_a_damaged_store_is_salvaged(tmp_path: Path, share: float) -> None:
    path = tmp_path / "runs.sqlite"
    ids = a_store_of(path, 12)
    damage(path, share)
    spoilt = path.read_bytes()
    told = salvage(path)
    assert told.damaged is not None
    assert told.damaged.read_bytes() == spoilt
    assert set(told.runs) <= set(ids)
    assert told.laps + told.strays > 0.8 * 12 * 16
    run = a_run()
    with open_store(path) as store:
        assert {summary.run for summary in store.runs()} == set(told.runs)
        laps = 0
        for run_id in told.runs:
            kept = store.load(run_id).laps
            laps += len(kept)
            for lap in kept:
                assert lap in run.laps
                for name, values in store.samples(run_id, lap.block, lap.contestant).items():
                    assert values.tobytes() == samples_of(lap)[name].tobytes()
        assert laps == told.laps
        keep_whole(store, a_run())
        assert len(store.runs()) == len(told.runs) + 1


def test_damage_met_while_reading_is_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 12)
    damage(path, 0.4, pages=path.stat().st_size // 2 // 4096)
    with open_store(path, reading=True) as store, pytest.raises(StoreIsDamaged, match="fairlap runs salvage"):
        [store.load(summary.run) for summary in store.runs()]


def test_a_bit_that_has_changed_in_samples_is_noticed_and_only_these_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 1)
    first, second = a_run().laps[:2]
    with closing(sqlite3.connect(path)) as db:
        [[raw]] = db.execute("SELECT ns FROM samples WHERE number = 1").fetchall()
    content = path.read_bytes()
    assert content.count(raw) == 1
    path.write_bytes(content.replace(raw, raw[:-1] + bytes([raw[-1] ^ 1])))
    with open_store(path, reading=True) as store:
        assert len(store.samples("last", second.block, second.contestant)) == 2
        with pytest.raises(StoreIsDamaged, match="samples are not what was written"):
            store.samples("last", first.block, first.contestant)
        with pytest.raises(StoreIsDamaged, match="fairlap runs salvage"):
            store.export_to("last", tmp_path / "run.json")
    assert salvage(path).samples == 31
    with open_store(path, reading=True) as store:
        assert list(store.samples("last", first.block, first.contestant)) == ["host_issue_ns"]


def test_a_whole_store_has_nothing_to_salvage(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    a_store_of(path, 2)
    before = path.read_bytes()
    assert "is whole; there is nothing to salvage" in salvage(path).text
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]


@contextmanager
def somebody_else() -> Iterator[None]:
    """The superuser may write everywhere, so that these tests become nobody for a while."""
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
            assert exact_json(store.load(run_id).laps) == exact_json(a_run().laps)
            assert store.rows(run_id)[0].contestant == "jax:fast"
            assert store.runs()[0].state == "finished"
            with pytest.raises(StoreIsReadOnly, match="may not be written"):
                store.remove(run_id)
        with pytest.raises(StoreIsReadOnly, match=r"runs\.sqlite .*set FAIRLAP_STORE"), open_store(path) as store:
            store.begin(a_run().plan, {}, "")
        with pytest.raises(StoreIsReadOnly, match="FAIRLAP_STORE"):
            open_store(folder / "new.sqlite")
        with pytest.raises(StoreIsReadOnly, match="cannot be made: Permission denied"):
            open_store(folder / "sub" / "new.sqlite")


def test_a_store_left_by_a_killed_process_in_a_folder_that_became_read_only_says_how_to_read_it(folder: Path) -> None:
    path, away = folder / "runs.sqlite", folder / "away"
    away.mkdir()
    with open_store(path) as store:
        recording = recording_of(store, a_run(), laps=3)
        for end in ("", "-wal"):
            shutil.copy(folder / f"runs.sqlite{end}", away)
        recording.end({})
    for file in away.iterdir():
        file.chmod(0o444)
    away.chmod(0o555)
    with somebody_else(), pytest.raises(StoreIsReadOnly, match=r"copy it and runs\.sqlite-wal to a folder of your own"):
        open_store(away / "runs.sqlite", reading=True)
    away.chmod(0o755)
    for file in away.iterdir():
        file.chmod(0o644)
    with open_store(away / "runs.sqlite", reading=True) as store:
        assert len(store.load("last").laps) == 3


def test_an_older_store_that_may_not_be_written_says_how_to_read_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "runs.sqlite"
    a_store_of(path, 1)
    path.chmod(0o444)
    folder.chmod(0o555)
    monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, with_a_note])
    with somebody_else(), pytest.raises(StoreIsReadOnly, match=r"older fairlap .*copy it"):
        open_store(path, reading=True)
