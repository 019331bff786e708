"""A saved run by what a user calls it: a file, or the id of a run that was kept."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.race.plan import Plan
from fairlap.race.resume import known
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


def run_to_go_on_with(text: str, *, keep: bool) -> tuple[Run, str]:
    """A file's run may be in the store as well, and each may know processes that the other lacks: the newer one counts.

    The id is empty when the store has no such run.
    """
    from fairlap.store.opening import store_path
    from fairlap.store.store import open_store

    run, run_id = run_named(text)
    from_file = Path(text).exists()
    if from_file and not store_path().exists():
        return run, ""
    with open_store(reading=True) as store:
        run_id = store.same_as(run) if from_file else run_id
        if run_id:
            store.require_ended(run_id)
        stored = store.load(run_id) if run_id else run
    if not from_file:
        return stored, run_id
    if not keep:
        return run, ""
    in_store, in_file = known(run.plan, stored.processes), known(run.plan, run.processes)
    if in_store <= in_file:
        return run, run_id
    if in_file <= in_store:
        return stored, run_id
    raise InvalidRequest(
        f"{text} and the run {run_id} in the store went on apart, each with processes that the other lacks;"
        f" go on with --resume {run_id}, or with --resume {text} --no-keep"
    )


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
