"""Running a plan from the command line: shown while it runs, kept in the store and in files, told at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.resume_command import resume_command
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.interrupts import hear_no_more, heard_once, status_of
from fairlap.race.plan import Plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.progress import Progress, progress_for
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.race.stopping import Ending
from fairlap.render.terminal import text_of
from fairlap.results.results import Results, results_of
from fairlap.store.run_file import save_run

if TYPE_CHECKING:
    import numpy as np

    from fairlap.results.prices import Price
    from fairlap.store.recording import Recording


@dataclass(frozen=True)
class Wishes:
    """What to leave behind, and how much to say."""

    json_file: Path | None = None
    more_files: Callable[[Results], list[str]] = lambda _results: []  # returns what failed
    keep: bool = True  # in the store
    baseline: str = ""
    price: Price | None = None
    quiet: bool = False
    asked_again: tuple[str, ...] = ()  # options that are in no run, for the line that goes on with it


@dataclass(frozen=True)
class Earlier:
    """An interrupted run of whole blocks that is resumed."""

    run: Run
    run_id: str


def run_and_tell(plan: Plan, wishes: Wishes, ending: Ending | None = None, earlier: Earlier | None = None) -> int:
    """The exit status: 0 when somebody finished, 1 when nobody did, or a file or data is lost, 130 after Ctrl-C."""
    with heard_once():
        return _run_and_tell(plan, wishes, ending, earlier)


def _run_and_tell(plan: Plan, wishes: Wishes, ending: Ending | None, earlier: Earlier | None) -> int:
    from fairlap.machine.facts import machine_facts

    began_at = earlier.run.began_at if earlier else datetime.now(UTC).isoformat(timespec="seconds")
    run = Run(plan, [], machine_facts(), {}, began_at)
    progress = progress_for(plan, quiet=wishes.quiet)
    kept = _Kept(run, earlier, progress) if wishes.keep else None
    race = Race(plan, progress, ending, kept.keep if kept else _forget, earlier.run.processes if earlier else ())
    run.processes = race.processes
    if earlier:
        progress.say(f"{len(race.processes)} of {plan.process_count()} processes are kept from before")
    before_s: Mapping[str, float] = earlier.run.wall_s if earlier else {}

    def save(results: Results | None = None) -> str:
        """Why the file could not be written; a full disk is no reason to lose the race."""
        run.wall_s = {name: seconds + before_s.get(name, 0.0) for name, seconds in race.shares().items()}
        run.ended_early = race.ended_early
        try:
            if wishes.json_file is not None:
                save_run(wishes.json_file, run, results, kept.run_id if kept else "")
        except OSError as error:
            return f"{wishes.json_file} could not be written: {error.strerror}"
        return ""

    interrupted = 0
    try:
        with progress:
            race.run(after_block=save)
        hear_no_more()
    except KeyboardInterrupt as interrupt:
        interrupted = status_of(interrupt)
        where = f"after {len(race.processes)} of {plan.process_count()} processes"
        if race.looking_for_memory_of:
            where = f"while the smallest memory of {race.looking_for_memory_of} was looked for"
        click.echo(f"fairlap: interrupted {where}", err=True)
    if race.ended_early:
        progress.say(f"ended after {len(race.processes)} of {plan.process_count()} processes: {race.ended_early}")
    stem = wishes.json_file.stem if wishes.json_file else ""
    results = results_of(
        run, (kept.run_id if kept else "") or stem or began_at, baseline=wishes.baseline, price=wishes.price
    )
    not_saved = save(results)
    run_id = kept.end(results, interrupted=bool(interrupted)) if kept else ""
    not_written = "; ".join(wishes.more_files(results))
    try:
        click.echo(text_of(results))
    finally:  # also when the output is full or closed
        for line in (not_saved and f"{not_saved}; {_elsewhere(run_id)}", not_written):
            if line:
                click.echo(f"fairlap: {line}", err=True)
        if run_id:
            click.echo(f"fairlap: kept as {run_id}; fairlap show {run_id}", err=True)
        if interrupted or race.data_lost:
            left_s = ending.budget_left_s() if ending else None
            if run_id:
                line = resume_command(run_id, wishes.json_file, wishes.asked_again, left_s)
                click.echo(f"fairlap: resume with: {line}", err=True)
            else:
                click.echo("fairlap: this run is not stored and cannot be resumed", err=True)
    if interrupted:
        return interrupted
    if not_saved or not_written or race.data_lost:
        return 1
    return 0 if any(process.finished for process in race.processes) else 1


def _elsewhere(run_id: str) -> str:
    """Where what a file would hold can be had."""
    return f"write it with: fairlap runs export {run_id} FILE" if run_id else "only the table above is left"


def _forget(_process: ProcessResult, _samples_ns: Mapping[str, np.ndarray]) -> None:
    """Of those who want nothing kept."""


class _Kept:
    """The run on its way into the store. A store that cannot be written is said once, and ends no race; one that
    refuses to go on with a run lets none begin."""

    def __init__(self, run: Run, earlier: Earlier | None, progress: Progress) -> None:
        from fairlap.store.store import open_store

        self._run = run
        self._say = progress.say
        self._trouble = ""
        self._recording: Recording | None = None
        with self._telling("this run is not kept", resuming=earlier is not None):
            store = open_store()
            if earlier:
                self._recording = store.resume(earlier.run_id, earlier.run.processes)
            else:
                self._recording = store.begin(run.plan, run.machine, run.began_at)

    @property
    def run_id(self) -> str:
        return self._recording.run if self._recording else ""

    def keep(self, process: ProcessResult, samples_ns: Mapping[str, np.ndarray]) -> None:
        if self._recording is not None:
            with self._telling("the store cannot be written; it is tried again with every process"):
                self._recording.keep(process, samples_ns)

    def end(self, results: Results, *, interrupted: bool) -> str:
        """The run's id; empty when it is not in the store, or not whole."""
        if self._recording is None:
            return ""
        self._trouble = ""
        with self._telling("the end of the run could not be kept"):
            self._recording.end(self._run.wall_s, self._run.ended_early, interrupted, rows=results.rows)
        if lost := self._recording.not_stored:
            self._say(f"{lost} processes are not in the store")
        return "" if lost or self._trouble else self._recording.run

    @contextlib.contextmanager
    def _telling(self, what: str, *, resuming: bool = False) -> Iterator[None]:
        try:
            yield
        except FairlapError as error:
            if resuming and isinstance(error, InvalidRequest):
                raise
            if not self._trouble:
                self._say(f"{what}: {error}")
            self._trouble = str(error)
