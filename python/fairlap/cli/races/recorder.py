"""A race on its way into the store of this machine, and from there into a shared one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap import quantity_text
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.progress import Progress
from fairlap.race.run import Run, with_continuation
from fairlap.results.results import Results
from fairlap.scenarios.process_result import ProcessResult

if TYPE_CHECKING:
    import numpy as np

    from fairlap.store.recording import Recording
    from fairlap.store.shared.sender import Sender


@dataclass(frozen=True)
class StoredRun:
    """An interrupted run that is resumed, with its whole blocks; or one that had ended, and why, to be continued."""

    run: Run
    run_id: str
    had_ended: str = ""

    @property
    def continued_after(self) -> tuple[int, ...]:
        """After how many blocks it had ended each time that it was continued, this time included."""
        before = self.run.continued_after
        return (*before, len({process.block for process in self.run.processes})) if self.had_ended else before


def named_sender() -> Sender | None:
    """Nothing of it is imported where the store is a file."""
    from fairlap.store.opening import shared_url

    if not shared_url():
        return None
    from fairlap.store.shared.sender import sender

    return sender()


def _unsent(run_id: str, reason: str) -> str:
    return f"{run_id} is stored on this machine alone: {reason}; `fairlap runs push` sends it"


class Recorder:
    """The run on its way into the store.

    A store that cannot be opened or written is reported once and does not stop the race; a run that cannot be resumed
    does. ``loss`` is an error and its code: of a run that is not in the store, or not whole there.
    """

    def __init__(self, run: Run, resumed: StoredRun | None, progress: Progress) -> None:
        from fairlap.store.opening import store_path
        from fairlap.store.recording import begin_recording, resume_recording
        from fairlap.store.store import open_store

        self._run = run
        self._sender = named_sender()
        self._report = progress.say
        self._trouble = self._code = ""
        self._unstored: list[str] = []  # findings after the blocks, which are written once
        self.loss: tuple[str, str] | None = None
        self._recording: Recording | None = None
        with self._reported("the store cannot be opened, so this run will not be stored", resuming=resumed is not None):
            store = open_store(store_path())
            if resumed:
                ended_early = with_continuation("", resumed.continued_after)
                self._recording = resume_recording(store, resumed.run_id, resumed.run.processes, ended_early)
            else:
                self._recording = begin_recording(store, run.plan, run.machine, run.began_at, run.roofs)
        if self._trouble:
            self.loss = (f"this run is not stored: {self._trouble}", self._code)
        if self._sender and self._recording:
            try:
                self._sender.expect(store.path, self._recording.run)
                self._sender.require_reachable()
            except FairlapError as error:
                self._report(f"this run is kept on this machine for the time being: {error}")

    @property
    def run_id(self) -> str:
        return self._recording.run if self._recording else ""

    @property
    def checkpoints(self) -> Path | None:
        return self._recording.checkpoints if self._recording else None

    @property
    def has_unstored(self) -> bool:
        return self._recording is not None and self._recording.not_stored > 0

    def record(self, process: ProcessResult, samples_ns: Mapping[str, np.ndarray]) -> None:
        if self._recording is not None:
            with self._reported("cannot write to the store; trying again after every process"):
                self._recording.keep(process, samples_ns)

    def record_profile(self, result: ProfileResult) -> None:
        if self._recording is not None:
            with self._reported("cannot store a profile"):
                self._unstored.append("a profile")
                self._recording.keep_profile(result)
                self._unstored.pop()

    def record_compilation(self, found: CompilationResult) -> None:
        if self._recording is not None:
            with self._reported("cannot write to the store"):
                self._unstored.append("what compiling did")
                self._recording.keep_compilation(found)
                self._unstored.pop()

    def end(self, results: Results, *, interrupted: bool) -> str:
        """Store the end of the run and return its id, which is empty when the store does not hold all of it."""
        if self._recording is None:
            return ""
        self._trouble = ""
        with self._reported("cannot store the end of the run"):
            self._recording.end(self._run.wall_s, self._run.ended_early, interrupted, rows=results.rows)
        lost = list(dict.fromkeys(self._unstored))
        if missing := self._recording.not_stored:
            lost.insert(0, quantity_text.count(missing, "process"))
        elif self._trouble:
            lost.insert(0, "the end of the run")
        if lost:
            self.loss = (f"the store has not all of this run: {' and '.join(lost)} could not be stored", self._code)
        return "" if lost else self._recording.run

    def send(self, run_id: str) -> tuple[str, tuple[str, str] | None]:
        """Send the run to the shared store; return its id there, which differs if its own was taken, and any error."""
        if self._sender is None:
            return run_id, None
        from fairlap.store.opening import store_path

        try:
            own, *others = self._sender.send(store_path(), run_id)
        except FairlapError as error:
            return run_id, (_unsent(run_id, str(error)), "W_UNSENT")
        for each in others:
            self._report(f"{each.run}, which waited: {each.message or each.outcome}")
        if own.outcome == "failed":
            return run_id, (_unsent(run_id, own.message), "W_UNSENT")
        if own.was:
            self._report(f"the id {own.was} belongs to a run of another machine; this one is now {own.run}")
        return own.run, None

    @contextlib.contextmanager
    def _reported(self, what: str, *, resuming: bool = False) -> Iterator[None]:
        try:
            yield
        except FairlapError as error:
            if resuming and isinstance(error, InvalidRequest):
                raise
            if not self._trouble:
                self._report(f"{what}: {error}")
            self._trouble, self._code = str(error), error.code
