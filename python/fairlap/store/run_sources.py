"""A saved run by what a user calls it: a file, or the id of a run that was kept."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.race.plan import Plan
from fairlap.race.run import Run
from fairlap.store.run_file import load_run

if TYPE_CHECKING:
    import numpy as np


def run_named(text: str) -> tuple[Run, str]:
    """The run and its id. A file that exists is meant before any id."""
    path = Path(text)
    if path.exists():
        return load_run(path), path.stem
    if path.suffix or len(path.parts) > 1:
        raise InvalidRequest(f"there is no file {text}; give one that `fairlap compare --json FILE` wrote")
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        run_id = store.id_of(text)
        return store.load(run_id), run_id


def samples_of(text: str) -> Callable[[int, str], Mapping[str, np.ndarray]] | None:
    """Of a kept run, its raw samples by block and contestant; a file has none."""
    if Path(text).exists():
        return None
    from fairlap.store.store import open_store

    return partial(open_store(reading=True).samples, text)


def require_contestant(plan: Plan, baseline: str) -> None:
    """A baseline with a slip in its name would leave every ratio out."""
    names = [name.text for name in plan.contestants]
    if baseline and baseline not in names:
        near = difflib.get_close_matches(baseline, names, n=1) or names
        raise InvalidRequest(f"the baseline {baseline!r} did not race; did you mean {', '.join(near)}?")
