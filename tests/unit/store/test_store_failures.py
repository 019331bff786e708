"""A killed writer, a full disk, several writers at once: nothing that had ended is lost."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.store import file_store, opening, recording
from fairlap.store.errors import StoreIsBusy, StoreIsFull
from fairlap.store.file_store import Store
from fairlap.store.recording import begin_recording, resume_recording
from fairlap.store.runs.run_locks import hold, is_held, let_go
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import recording_of, samples_of

_HERE = Path(__file__).parents[2] / "support"


def started(code: str, store: Path) -> subprocess.Popen[str]:
    """Start a separate process that finds what these tests use."""
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
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import recording_of
recording = recording_of(open_store(Path(sys.argv[1])), a_run(), processes=6)
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
        assert store.load(run_id).processes == a_run().processes[:6]
        for process in a_run().processes[:6]:
            found = store.samples(run_id, process.block, process.contestant)
            assert {name: values.tobytes() for name, values in found.items()} == {
                name: values.tobytes() for name, values in samples_of(process).items()
            }
        assert [row.processes for row in store.rows(run_id)] == [3, 3]


@pytest.mark.slow
@pytest.mark.sanitized
def test_the_next_recording_settles_what_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_RECORDS_SIX_AND_WAITS, path)
    assert writer.stdout is not None
    run_id = writer.stdout.readline().strip()
    writer.kill()
    writer.communicate()
    with open_store(path) as store:
        recording = recording_of(store, a_run(), processes=2)
        with closing(sqlite3.connect(path)) as db:
            assert dict(db.execute("SELECT id, state FROM runs")) == {run_id: "killed", recording.run: "running"}
            assert db.execute("SELECT count(*) FROM results WHERE run = ?", (run_id,)).fetchone() == (2,)
        recording.end({})
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]


_FILLS_THE_DISK = """
import resource, sys
from pathlib import Path
from fairlap.store.recording import begin_recording
from fairlap.store.store import open_store
from fairlap.store.errors import StoreIsFull
from runs_for_rows import a_run
from runs_in_store import samples_of
run = a_run()
store = open_store(Path(sys.argv[1]))
recording = begin_recording(store, run.plan, run.machine, run.began_at)
most = 600_000
resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
for number, process in enumerate(run.processes):
    try:
        recording.keep(process, samples_of(process, 10_000))
    except StoreIsFull as full:
        code = full.code
print(recording.not_stored, len(run.processes), code, flush=True)
if sys.stdin.readline():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    recording.end(run.wall_s)
"""


@pytest.mark.slow_but("False")
@pytest.mark.sanitized
@pytest.mark.parametrize("space_is_made", [False, True])
def test_on_a_full_disk_all_that_fitted_is_kept_and_the_rest_when_there_is_space(
    tmp_path: Path, space_is_made: bool
) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_FILLS_THE_DISK, path)
    assert writer.stdout is not None
    waiting, of, code = writer.stdout.readline().split()
    assert 0 < int(waiting) < int(of)
    assert code == "E_STORE_FULL"
    writer.communicate("go on\n" if space_is_made else None)
    run = a_run()
    kept = int(of) if space_is_made else int(of) - int(waiting)
    with open_store(path, reading=True) as store:
        assert store.state("last") == ("finished" if space_is_made else "killed")
        assert store.load("last").processes == run.processes[:kept]
        last = run.processes[kept - 1]
        assert store.samples("last", last.block, last.contestant)["wall_ns"][:5].tolist() == (
            samples_of(last, 10_000)["wall_ns"][:5].tolist()
        )


_READS_WHERE_NOTHING_CAN_BE_WRITTEN = """
import resource, signal, sys
from pathlib import Path
from fairlap.errors import FairlapError
from fairlap.store.store import open_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
for reading in (True, False):
    try:
        with open_store(Path(sys.argv[1]), reading=reading) as store:
            found = f"{len(store.load('last').processes)} processes"
    except FairlapError as error:
        found = error.code
    print(found, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_store_on_a_full_disk_can_be_read_and_is_written_again_when_there_is_space(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        recording_of(store, a_run(), processes=2).end({})
    code, env = _READS_WHERE_NOTHING_CAN_BE_WRITTEN, {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def read(where: Path) -> list[str]:
        done = subprocess.run([sys.executable, "-c", code, where], env=env, stderr=subprocess.PIPE, text=True)
        return done.stderr.splitlines()

    assert read(path) == ["2 processes", "E_STORE_FULL"]
    (tmp_path / "empty.sqlite").touch()  # as SQLite leaves it where there was no space for its first page
    assert read(tmp_path / "empty.sqlite") == ["E_NO_RUN", "E_STORE_FULL"]
    for name in ("runs.sqlite", "empty.sqlite"):
        with open_store(tmp_path / name) as store:
            recording_of(store, a_run(), processes=3).end({})
            assert store.state("last") == "finished"


def test_a_store_that_may_grow_no_more_says_that_the_disk_is_full(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        run = a_run()
        recording = recording_of(store, run, processes=2)
        [[pages]] = store._db.execute("PRAGMA page_count").fetchall()
        store._db.execute(f"PRAGMA max_page_count = {pages + 3}").fetchall()
        with pytest.raises(StoreIsFull, match=r"runs\.sqlite"):
            recording.keep(run.processes[2], samples_of(run.processes[2], 10_000))
        assert store.load("last").processes == run.processes[:2]
        store._db.execute("PRAGMA max_page_count = 100000").fetchall()
        recording.keep(run.processes[3], samples_of(run.processes[3]))
        assert store.load("last").processes == run.processes[:4]


_RECORDS_A_RUN = """
import sys
from pathlib import Path
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    with open_store(Path(sys.argv[1])) as store:
        print(keep_whole(store, a_run()), flush=True)
"""


@pytest.mark.slow
@pytest.mark.sanitized
def test_several_writers_at_once_all_keep_everything(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
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
        assert {(summary.state, summary.recorded_processes) for summary in store.runs()} == {("finished", 16)}
        for run_id in ids:
            assert store.load(run_id).processes == a_run().processes


def test_a_writer_that_never_lets_go_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setattr(opening, "_WAIT_FOR_OTHERS_S", 0.1)
    with open_store(path) as store, closing(sqlite3.connect(path)) as other:
        recording = recording_of(store, a_run(), processes=1)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreIsBusy, match=r"runs\.sqlite"):
            recording.keep(a_run().processes[1])
        other.execute("ROLLBACK")
        recording.keep(a_run().processes[2])
        assert store.load("last").processes == a_run().processes[:3]


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_run_that_is_being_recorded_is_not_gone_on_with_nor_settled_by_another(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    writer = started(_RECORDS_SIX_AND_WAITS, path)
    assert writer.stdout is not None
    run_id = writer.stdout.readline().strip()
    with open_store(path) as store:
        with pytest.raises(InvalidRequest, match="recorded"):
            resume_recording(store, run_id, store.load(run_id).processes)
        store.settle_killed()
        assert store.state(run_id) == "running"
        writer.kill()
        writer.communicate()
        again = resume_recording(store, run_id, store.load(run_id).processes)
        for process in a_run().processes[6:]:
            again.keep(process)
        again.end({})
        assert store.load(run_id).processes == a_run().processes


def test_who_looks_at_a_run_keeps_nobody_from_going_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        recording_of(store, a_run(), processes=2).end({}, interrupted=True)
        run_id = store.id_of("last")
        mark = path.with_name(f"{path.name}.{run_id}.running")
        with mark.open("w") as looking:
            fcntl.flock(looking, fcntl.LOCK_SH)
            done = threading.Timer(0.1, lambda: fcntl.flock(looking, fcntl.LOCK_UN))
            done.start()
            again = resume_recording(store, run_id, store.load(run_id).processes)
            done.join()
        again.end({})


def test_a_mark_that_was_removed_while_it_was_opened_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.sqlite"
    lock = fcntl.flock
    removed: list[IO[str]] = []

    def removing(file: IO[str], how: int) -> None:
        if not removed:
            removed.append(file)
            let_go(path, "a")
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", removing)
    held = hold(path, "a")
    assert is_held(path, "a")
    let_go(path, "a", held)
    assert not is_held(path, "a")


def test_a_run_that_ends_while_others_are_settled_stays_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        ending = recording_of(store, a_run(), processes=2)

        def ended(path: Path, run: str) -> bool:
            price = price_given("2 EUR/h")
            ending.end({}, rows=results_of(store.load(ending.run), ending.run, price=price).rows)
            return False

        monkeypatch.setattr(file_store, "is_held", ended)
        store.settle_killed()
        assert store.state("last") == "finished"
        assert all(row.currency == "EUR" for row in store.rows("last"))


def test_a_run_that_somebody_goes_on_with_just_now_is_not_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_store, "is_held", lambda *_: False)
    with open_store(tmp_path / "runs.sqlite") as store:
        recording = recording_of(store, a_run(), processes=2)
        store.settle_killed()
        recording.end({})
        assert store.state("last") == "finished"


def test_who_cannot_write_that_it_goes_on_leaves_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        recording_of(store, a_run(), processes=2).end({}, interrupted=True)
        store._db.execute("PRAGMA query_only = 1")
        with pytest.raises(FairlapError):
            resume_recording(store, "last", store.load("last").processes)
        assert not list(tmp_path.glob("*.running"))
        assert store.state("last") == "interrupted"


class Disk:
    """A store that has room for some processes, and for a run's end only once the reserve is given up."""

    def __init__(self, store: Store, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.reserved = room, True
        keep, note_end = store.keep, store.note_end
        monkeypatch.setattr(store, "keep", lambda *given: self._written(lambda: keep(*given), 1))
        monkeypatch.setattr(store, "note_end", lambda *given: self._written(lambda: note_end(*given), 0))
        monkeypatch.setattr(recording, "give_up_reserve", lambda _lock: setattr(self, "reserved", False))

    def _written(self, write: Callable[[], None], size: int) -> None:
        if self.room < size or (self.reserved and not self.room):
            raise StoreIsFull("full")
        self.room -= size
        write()


def test_a_run_that_ends_on_a_full_disk_is_interrupted_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run()
    with open_store(tmp_path / "runs.sqlite") as store:
        begun = begin_recording(store, run.plan, run.machine, run.began_at)
        Disk(store, room=2, monkeypatch=monkeypatch)
        for process in run.processes:
            with contextlib.suppress(StoreIsFull):
                begun.keep(process)
        with pytest.raises(StoreIsFull):
            begun.end({})
        [found] = store.runs()
        assert (found.state, found.recorded_processes) == ("interrupted", 2)
        assert found.ended_early
        store.require_ended(found.run)


def test_a_run_reserves_space_for_its_end_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        begun = recording_of(store, a_run(), processes=2)
        [mark] = tmp_path.glob("*.running")
        assert mark.stat().st_size > 100_000
        with pytest.raises(BlockingIOError):
            hold(path, begun.run)
        assert mark.stat().st_size > 100_000
        begun.end({})
    assert not [*tmp_path.glob("*.running")]
