"""A saved run by what a user calls it: a file, or the id of a run that was kept."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.errors import WrongRequest
from fairlap.race.plan import Plan
from fairlap.race.saving import SavedRun, load_run

if TYPE_CHECKING:
    import numpy as np


def run_named(text: str) -> tuple[SavedRun, str]:
    """The run and its id. A file that exists is meant before any id."""
    path = Path(text)
    if path.exists():
        return load_run(path), path.stem
    if path.suffix or len(path.parts) > 1:
        raise WrongRequest(f"there is no file {text}; give one that `fairlap compare --json FILE` wrote")
    from fairlap.ledger.store import open_store

    with open_store(reading=True) as store:
        run_id = store.id_of(text)
        return store.load(run_id), run_id


def kept_as(run: SavedRun) -> str:
    """The id of a run that came from a file, when the store has it too."""
    from fairlap.ledger.opening import store_path
    from fairlap.ledger.store import open_store

    if not store_path().exists():
        return ""
    with open_store(reading=True) as store:
        return store.same_as(run)


def samples_of(text: str) -> Callable[[int, str], Mapping[str, np.ndarray]] | None:
    """Of a kept run, its raw samples by block and contestant; a file has none."""
    if Path(text).exists():
        return None
    from fairlap.ledger.store import open_store

    return partial(open_store(reading=True).samples, text)


def require_contestant(plan: Plan, baseline: str) -> None:
    """A baseline with a slip in its name would leave every ratio out."""
    names = [name.text for name in plan.contestants]
    if baseline and baseline not in names:
        near = difflib.get_close_matches(baseline, names, n=1) or names
        raise WrongRequest(f"the baseline {baseline!r} did not race; did you mean {', '.join(near)}?")
