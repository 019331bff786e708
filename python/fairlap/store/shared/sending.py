"""Runs on their way between the store of this machine and a shared one. Sent twice, a run is there once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.printed_document import PrintedDocument
from fairlap.store.errors import NoSuchRun, StoreIsBusy
from fairlap.store.file_store import Store, checkpoints_of
from fairlap.store.runs import run_ids
from fairlap.store.runs.attached import attached_folder
from fairlap.store.shared import waiting
from fairlap.store.shared.content import RunContent, content_of, relation
from fairlap.store.shared.copying import copy_run
from fairlap.store.shared.errors import StoredMeanwhile, StoreIsUnreachable
from fairlap.store.shared.shared_store import SharedStore

Outcome = Literal["sent", "updated", "received", "unchanged", "older", "failed"]

_ATTEMPTS = 4


class Carried(msgspec.Struct, frozen=True):
    """What became of a run. ``was`` is the id that it had until it was found taken, else empty."""

    run: str
    outcome: Outcome
    was: str = ""
    code: str = ""
    message: str = ""


class CarriedRuns(PrintedDocument, frozen=True, tag="fairlap.carried-runs/1"):
    runs: list[Carried]


def push(local: Store, shared: SharedStore, runs: Iterable[str]) -> Iterator[Carried]:
    """Send the runs; one that cannot be sent does not hold up the others, except when the server stays away."""
    local.settle_killed()
    for carried in _each(shared, runs, partial(_pushed, local, shared)):
        if carried.outcome != "failed" or carried.code == NoSuchRun.code:  # sent, or removed meanwhile
            waiting.done(local.path, carried.run)
        yield carried


def pull(local: Store, shared: SharedStore, runs: Iterable[str]) -> Iterator[Carried]:
    yield from _each(shared, runs, partial(_pulled, local, shared))


def _each(shared: SharedStore, runs: Iterable[str], carry: Callable[[str, str | None], Carried]) -> Iterator[Carried]:
    """With the digest of what the shared store has of a run, or None."""
    listed = list(runs)
    known = shared.known_digests(listed)
    away: StoreIsUnreachable | None = None
    for run in listed:
        try:
            if away is not None:
                raise away
            carried = carry(run, known.get(run))
        except FairlapError as error:
            carried = Carried(run, "failed", code=error.code, message=str(error))
            away = error if isinstance(error, StoreIsUnreachable) else None
        yield carried


def all_runs(store: Store) -> list[str]:
    """List all runs, the oldest first."""
    with store.database() as db:
        return [run for (run,) in db.execute("SELECT id FROM runs ORDER BY id")]


def _pushed(local: Store, shared: SharedStore, run: str, known_digest: str | None) -> Carried:
    if local.state(run) == "running":
        raise InvalidRequest(f"the run {run} is still being recorded; send it when it has ended")
    ours = _content(local, run)
    if ours.digest == known_digest:
        return Carried(run, "unchanged")
    was = ""
    for attempt in range(_ATTEMPTS):
        try:
            theirs = None
            if known_digest is not None or attempt > 0:
                with shared.database() as db:
                    theirs = content_of(db, run)
            related = relation(ours, theirs) if theirs else None
            if related == "other":
                run, was = _another_id(local, shared, run, ours), was or run
                ours = _content(local, run)
                continue
            if related in ("same", "older"):
                return Carried(run, "older" if related == "older" else "unchanged", was)
            copy_run(ours, local, shared, run, theirs)
            return Carried(run, "updated" if related else "sent", was)
        except StoreIsUnreachable:
            if attempt == _ATTEMPTS - 1:
                raise
            shared.reconnect()
        except StoredMeanwhile:
            continue
    raise StoreIsBusy(f"other machines kept storing {was or run} in {shared.where} at the same time; try again")


def _pulled(local: Store, shared: SharedStore, run: str, known_digest: str | None) -> Carried:
    with local.database() as db:
        ours = content_of(db, run)
    if ours and ours.digest == known_digest:
        return Carried(run, "unchanged")
    for attempt in range(_ATTEMPTS):
        try:
            theirs = _content(shared, run)
            related = relation(theirs, ours) if ours else None
            if related == "other" or (related == "newer" and local.state(run) == "running"):
                raise InvalidRequest(
                    f"this machine has another run {run}, and keeps it; `fairlap runs push {run}` gives it a new id"
                )
            if related in ("same", "older"):
                return Carried(run, "older" if related == "older" else "unchanged")
            copy_run(theirs, shared, local, run, ours)
            return Carried(run, "updated" if related else "received")
        except StoreIsUnreachable:
            if attempt == _ATTEMPTS - 1:
                raise
            shared.reconnect()
    raise AssertionError


def _another_id(local: Store, shared: SharedStore, run: str, content: RunContent) -> str:
    """Two machines began a race in one second, and drew the same letters."""
    while True:
        new = run_ids.id_of(content.run["began_at"])
        if not shared.known_digests([new]) and _rename(local, run, new):
            return new


def _rename(local: Store, run: str, new: str) -> bool:
    """Rename a run; return False when there is a run of the new name."""
    with local.database(writing=True) as db:
        if content_of(db, new) is not None:
            return False
        db.execute("PRAGMA defer_foreign_keys = ON")  # until the end of this transaction
        db.execute("UPDATE runs SET id = ? WHERE id = ?", (new, run))
        db.execute("UPDATE rows SET run = ? WHERE run = ?", (new, run))
    waiting.renamed(local.path, run, new)
    for beside in (checkpoints_of, attached_folder):
        with contextlib.suppress(OSError):
            beside(local.path, run).rename(beside(local.path, new))
    return True


def _content(store: Store, run: str) -> RunContent:
    with store.database() as db:
        content = content_of(db, run)
    if content is None:
        raise NoSuchRun(f"the run {run} is no longer in {store.where}; it was removed meanwhile")
    return content
