"""The store of runs: one SQLite file of plans, processes, samples and rows (tables: docs/how-to/find-a-run.md)."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.store.database import Database
from fairlap.store.errors import NoSuchRun, StoreError, readable_errors
from fairlap.store.opening import writing
from fairlap.store.runs import run_ids
from fairlap.store.runs.attached import attached_folder
from fairlap.store.runs.run_locks import hold, is_held, let_go
from fairlap.store.search import RunSummary, State, Wanted, state_shown, summaries
from fairlap.store.tables import (
    StoredProcess,
    all_samples,
    insert_run,
    keep_rows,
    kept_rows,
    kept_samples,
    store_compilation,
    store_process,
    store_profile,
    stored_plan_and_machine,
    stored_run,
)

if TYPE_CHECKING:
    import numpy as np

    from fairlap.results.row import Row

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


class Store:
    """Runs are named by their id, by a beginning of it that fits one only, or by ``last``."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    @property
    def where(self) -> str:
        """For messages."""
        return str(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # on a full disk the log stays, and is as good
            self._db.close()

    def reconnect(self) -> None:
        """After a server went away; a file stays where it is."""

    # Writing a run, as it is recorded

    def require_ended(self, run: str) -> None:
        """Check that the run is no longer recorded, which passes where locks do not work."""
        try:
            let_go(self.path, run, hold(self.path, run))
        except BlockingIOError:
            raise _still_recorded(run) from None
        except OSError:
            return

    def keep(self, run: str, process: StoredProcess) -> None:
        with self._writing() as db:
            store_process(db, self.number(run), process)

    def keep_profile(self, run: str, result: ProfileResult) -> None:
        with self._writing() as db:
            store_profile(db, self.number(run), result)

    def keep_compilation(self, run: str, found: CompilationResult) -> None:
        with self._writing() as db:
            store_compilation(db, self.number(run), found)

    def note_end(self, run: str, state: State, wall_s: Mapping[str, float], ended_early: str) -> None:
        with self._writing() as db:
            db.execute(
                "UPDATE runs SET state = ?, wall_s = ?, ended_early = ? WHERE id = ?",
                (state, msgspec.json.encode(dict(wall_s)).decode(), ended_early, run),
            )

    def compute_rows(self, run: str) -> None:
        """From the processes, in the place of the rows that were there."""
        from fairlap.results.results import results_of

        self.replace_rows(run, results_of(self.load(run), run).rows)

    def replace_rows(self, run: str, rows: Sequence[Row]) -> None:
        with self._writing() as db:
            db.execute("DELETE FROM rows WHERE run = ?", (run,))
            keep_rows(db, rows)

    def settle_killed(self) -> None:
        """Mark runs that no process records any more as killed, and compute their rows."""
        with self._reading() as db:
            running = [run for (run,) in db.execute("SELECT id FROM runs WHERE state = 'running' ORDER BY id")]
        for run in running:
            if is_held(self.path, run):
                continue
            try:
                with self.writing_alone(run) as (db, lock):
                    settled = "UPDATE runs SET state = 'killed' WHERE id = ? AND state = 'running'"
                    killed = db.execute(settled, (run,)).rowcount > 0  # else it has ended since
            except InvalidRequest:
                continue  # another process has resumed it
            let_go(self.path, run, lock)
            with contextlib.suppress(FairlapError):  # its processes are stored; no other run waits for its rows
                if killed:
                    self.compute_rows(run)

    # Reading

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Read the state of one moment within, although others write or remove runs."""
        with self._reading() as db:
            db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:  # SQLite itself has ended it after some errors
                    db.execute("ROLLBACK")

    def runs(self, wanted: Wanted | None = None, limit: int | None = None) -> list[RunSummary]:
        """List the runs, the newest first."""
        with self._reading() as db:
            return summaries(db, self.path, wanted or Wanted(), limit)

    def id_of(self, run: str) -> str:
        return self.ask(run_ids.id_meant, run)

    def state(self, run: str) -> State:
        run = self.id_of(run)
        with self._reading() as db:
            [[stored]] = db.execute("SELECT state FROM runs WHERE id = ?", (run,))
        return state_shown(self.path, run, stored)

    def load(self, run: str) -> Run:
        run = self.id_of(run)
        with self._reading() as db, self._understood(f"the run {run} in {self.where}"):
            return stored_run(db, run)

    def plan_and_machine(self, run: str) -> tuple[Plan, dict[str, str]]:
        """Without the processes, which take longer to read than everything else."""
        run = self.id_of(run)
        with self._reading() as db, self._understood(f"the run {run} in {self.where}"):
            return stored_plan_and_machine(db, run)

    def samples(self, run: str, block: int, contestant: str) -> dict[str, np.ndarray]:
        """By quantity, in nanoseconds, the headline first. Empty for a process that ended without any."""
        import numpy as np

        run = self.id_of(run)
        found = self.ask(kept_samples, self.number(run), block, contestant)
        if found is None:
            raise InvalidRequest(f"the run {run} has no process of {contestant} in block {block}")
        return {quantity: np.frombuffer(raw, dtype="<f8") for quantity, raw in found.items()}

    def rows(self, run: str) -> list[Row]:
        """As computed when the run ended; computed now when it has not, or has columns of an older fairlap."""
        from fairlap.results.results import results_of

        run = self.id_of(run)
        return self.ask(kept_rows, run) or list(results_of(self.load(run), run).rows)

    def ask(
        self,
        query: Callable[Concatenate[Database, _Asked], _Answer],
        *values: _Asked.args,
        **named: _Asked.kwargs,
    ) -> _Answer:
        """Ask a function of this room that reads the tables."""
        with self._reading() as db, self._understood(f"{self.where} has a run that"):
            return query(db, *values, **named)

    def remove(self, run: str) -> str:
        """With its samples; the space goes back to the disk. The id of the run that is gone."""
        run = self.id_of(run)
        if self.state(run) == "running":
            raise InvalidRequest(f"the run {run} is still being recorded; end it first")
        with self._writing() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run,))
        let_go(self.path, run)
        for beside in (checkpoints_of(self.path, run), attached_folder(self.path, run)):
            shutil.rmtree(beside, ignore_errors=True)
        with self._reading():
            self._db.executescript("PRAGMA incremental_vacuum")  # execute() would free a single page
        return run

    # Carrying a run from one store to another

    def export_to(self, run: str, file: Path) -> None:
        from fairlap.machine.files.atomic_files import write_output

        write_output(file, self.exported(run))

    def exported(self, run: str) -> bytes:
        """Export the run as a file, with all its samples."""
        from fairlap.results.results import results_of
        from fairlap.store.runs.run_file import encode_export

        run = self.id_of(run)
        samples = self.ask(all_samples, self.number(run))
        return encode_export(results_of(self.load(run), run), self.state(run), self.rows(run), samples)

    def import_from(self, file: Path) -> str:
        """All of it or nothing. The id, which is the one that it had elsewhere."""
        from fairlap.store.runs.run_file import load_run_file, processes_with_samples, state_of

        given = load_run_file(file)
        processes = processes_with_samples(given, file)
        with self._writing() as db:
            if self._number_of(given.id) is not None:
                raise InvalidRequest(f"the run {given.id} is in {self.where} already; nothing was changed")
            number = insert_run(db, given.id, state_of(given), given)
            for process in processes:
                store_process(db, number, process)
            keep_rows(db, given.rows)
        if not given.rows:
            self.compute_rows(given.id)
        return given.id

    def database(self, *, writing: bool = False) -> AbstractContextManager[Database]:
        """For the other modules of this room. What is written is written whole, or not at all."""
        return self._writing() if writing else self._reading()

    # Errors of SQLite become errors of the store

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        with readable_errors(self.path):
            yield self._db

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        try:
            yield
        except NOT_THE_DOCUMENT as error:
            raise StoreError(f"{what} cannot be read: {error}") from None

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        with readable_errors(self.path), writing(self._db):
            yield self._db

    @contextmanager
    def writing_alone(self, run: str) -> Iterator[tuple[Database, IO[str]]]:
        """Take the run's lock for writing, and keep it unless the write fails."""
        try:
            lock = hold(self.path, run)
        except BlockingIOError:
            raise _still_recorded(run) from None
        except OSError as error:
            raise StoreError(f"{self.path.parent} cannot be written: {error.strerror}") from None
        try:
            with self._writing() as db:
                yield db, lock
        except BaseException:
            let_go(self.path, run, lock)
            raise

    def number(self, run: str) -> int:
        number = self._number_of(run)
        if number is None:
            raise NoSuchRun(f"the run {run} is no longer in {self.where}; it was removed meanwhile")
        return number

    def _number_of(self, run: str) -> int | None:
        with self._reading() as db:
            found = db.execute("SELECT number FROM runs WHERE id = ?", (run,)).fetchone()
        return None if found is None else int(found[0])


def _still_recorded(run: str) -> InvalidRequest:
    return InvalidRequest(f"the run {run} is still being recorded by another process; end it first, or wait for it")


def checkpoints_of(store: Path, run: str) -> Path:
    return store.with_name(f"{store.name}.{run}.checkpoints")
