"""The rows of a run with its plan and machine, read without its processes where they were stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.file_store import Store
from fairlap.store.runs.run_file import load_run, load_run_file
from fairlap.store.runs.run_sources import run_named
from fairlap.store.store import open_store


@dataclass(frozen=True)
class RowsOfRun:
    name: str  # as the user gave it
    run: str  # its id, or the stem of its file
    rows: tuple[Row, ...]  # with the price that the race was given
    plan: Plan
    machine: dict[str, str]


def rows_named(text: str) -> RowsOfRun:
    """Of a run file, or of a stored run by its id. An existing file takes precedence over an id."""
    path = Path(text)
    if path.exists():
        return _rows_of_file(text, path)
    if path.suffix or len(path.parts) > 1:
        run_named(text)  # raises: there is no such file
    with open_store(reading=True) as store:
        return rows_stored(store, text)


def rows_stored(store: Store, text: str) -> RowsOfRun:
    """Of a stored run, never of a file."""
    run_id = store.id_of(text)
    return RowsOfRun(text, run_id, tuple(store.rows(run_id)), *store.plan_and_machine(run_id))


def _rows_of_file(text: str, path: Path) -> RowsOfRun:
    """Read a file's rows; they are computed from its processes where it has none, or an older fairlap's."""
    try:
        file = load_run_file(path)
    except InvalidRequest:
        file = None
    if file is not None and file.rows:
        return RowsOfRun(text, path.stem, tuple(file.rows), file.plan, file.machine)
    run = load_run(path)
    return RowsOfRun(text, path.stem, tuple(results_of(run, path.stem).rows), run.plan, run.machine)
