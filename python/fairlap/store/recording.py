"""A run on its way into the store, process by process."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.roofs import Roofs
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.planning.plan import Plan
from fairlap.race.resume import whole_blocks
from fairlap.race.run import Run
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.errors import StoreIsFull
from fairlap.store.file_store import Store, checkpoints_of
from fairlap.store.runs import run_ids
from fairlap.store.runs.run_locks import give_up_reserve, let_go, reserve
from fairlap.store.search import State
from fairlap.store.tables import StoredProcess, insert_run, remove_other_blocks, stored_process
from fairlap.version import __version__

if TYPE_CHECKING:
    import numpy as np

    from fairlap.results.row import Row


_RESUMABLE = "what is missing here can be raced with --resume"


class Recording:
    """A run on its way into the store: every process is stored by itself, as soon as it has ended.

    What cannot be written is retried with the next process, so that freeing space in time saves everything.
    """

    def __init__(self, store: Store, run: str, lock: IO[str]) -> None:
        self.run = run
        self._store = store
        self._lock = lock
        reserve(lock)
        self._waiting: deque[StoredProcess] = deque()

    @property
    def checkpoints(self) -> Path:
        """The folder of what is kept of a block that is still running."""
        return checkpoints_of(self._store.path, self.run)

    @property
    def not_stored(self) -> int:
        """Processes that wait for space."""
        return len(self._waiting)

    def keep(self, process: ProcessResult, samples_ns: Mapping[str, np.ndarray] | None = None) -> None:
        """Store a process, which has no samples if it crashed.

        Stored again, it replaces what was known, and its samples stay.
        """
        self._waiting.append(stored_process(process, samples_ns))
        self._write_waiting()

    def keep_profile(self, result: ProfileResult) -> None:
        self._store.keep_profile(self.run, result)

    def keep_compilation(self, found: CompilationResult) -> None:
        self._store.keep_compilation(self.run, found)

    def end(
        self,
        wall_s: Mapping[str, float],
        ended_early: str = "",
        interrupted: bool = False,
        *,
        rows: Sequence[Row] | None = None,
    ) -> None:
        """Store the run's end first, then its rows: rows can be computed again from the processes, its end cannot.

        On a full disk the run is interrupted, with what fitted; StoreIsFull is raised all the same where that is not
        all.
        """
        state: State = "interrupted" if interrupted else "finished"
        try:
            self._write_waiting()
            self._store.note_end(self.run, state, wall_s, ended_early)
        except StoreIsFull:
            give_up_reserve(self._lock)
            self._store.note_end(self.run, "interrupted", wall_s, f"the disk was full; {_RESUMABLE}")
            self._write_waiting()
            self._store.note_end(self.run, state, wall_s, ended_early)
        finally:
            let_go(self._store.path, self.run, self._lock)
        if rows is None:
            self._store.compute_rows(self.run)
        else:
            self._store.replace_rows(self.run, rows)

    def _write_waiting(self) -> None:
        while self._waiting:
            self._store.keep(self.run, self._waiting[0])
            self._waiting.popleft()


def begin_recording(
    store: Store, plan: Plan, machine: Mapping[str, str], began_at: str, roofs: Roofs | None = None
) -> Recording:
    """Begin a run, and settle runs whose process was killed."""
    run = Run(plan, [], dict(machine), {}, began_at, fairlap=__version__, roofs=roofs)
    store.settle_killed()
    run_id = store.ask(run_ids.id_after, began_at)
    with store.writing_alone(run_id) as (db, lock):
        insert_run(db, run_id, "running", run)
    return Recording(store, run_id, lock)


def resume_recording(store: Store, run: str, before: Sequence[ProcessResult], ended_early: str = "") -> Recording:
    """Record more processes of an interrupted run. ``before`` are those of its whole blocks; others are dropped.

    ``ended_early`` is what stays known of earlier ends while it runs.
    """
    run = store.id_of(run)
    with store.writing_alone(run) as (db, lock):
        stored = store.load(run)
        if len(whole_blocks(stored.plan, stored.processes)) != len(before):
            raise InvalidRequest(f"another process has resumed the run {run} in the meantime; resume it again")
        db.execute("UPDATE runs SET state = 'running', ended_early = ? WHERE id = ?", (ended_early, run))
        db.execute("DELETE FROM rows WHERE run = ?", (run,))
        remove_other_blocks(db, store.number(run), {process.block for process in before})
    return Recording(store, run, lock)
