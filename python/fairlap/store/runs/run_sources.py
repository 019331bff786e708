"""A run by the name that a user gives: a run file, or the id of a stored run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.request.names import require_baseline
from fairlap.store.errors import NoSuchRun
from fairlap.store.runs.run_file import load_run
from fairlap.store.runs.run_ids import LAST

if TYPE_CHECKING:
    import numpy as np


def run_named(text: str) -> tuple[Run, str]:
    """Load the run, and find its id; an existing file takes precedence over an id."""
    path = Path(text)
    if path.exists():
        return load_run(path), path.stem
    if path.suffix or len(path.parts) > 1:
        raise InvalidRequest(f"there is no file {text}; give a run file, as written by `fairlap compare -o race.json`")
    from fairlap.store.store import open_store

    try:
        opened = open_store(reading=True)
    except NoSuchRun as error:
        raise NoSuchRun(str(error) if text == LAST else f"there is no file {text}, and {error}") from None
    with opened as store:
        run_id = store.id_of(text)
        return store.load(run_id), run_id


def samples_of(text: str) -> Callable[[int, str], Mapping[str, np.ndarray]] | None:
    """Open the raw samples of a stored run by block and contestant; a file has none."""
    if Path(text).exists():
        return None
    from fairlap.store.store import open_store

    return partial(open_store(reading=True).samples, text)


def require_contestant(plan: Plan, baseline: str) -> None:
    """Refuse a baseline that is not a contestant of the plan."""
    require_baseline(baseline, [name.text for name in plan.contestants])
