"""Sweeps in the store: which blocks their runs have, which are stored, and where each ran.

A run of a sweep is of one kind of machine. It is `interrupted` until all of its blocks are stored. They are written by
whichever process drives the sweep, each in one transaction with its entry in `sweep_blocks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.roofs import Roofs
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import checked_plan
from fairlap.race.run import Run
from fairlap.store.database import Database
from fairlap.store.file_store import Store
from fairlap.store.runs import run_ids
from fairlap.store.tables import StoredProcess, insert_run, store_process

Spread = Literal["alike", "every"]
"""`alike`: machines of one kind share the blocks of a run. `every`: each machine has a run."""


class RunOfSweep(msgspec.Struct):
    """``machine`` is the key of those that may run its blocks; ``hosts`` has each block that is stored."""

    run: str
    request: str
    machine: str
    plan: Plan
    facts: dict[str, str]
    began_at: str
    hosts: dict[int, str] = {}

    @property
    def missing(self) -> list[int]:
        return [block.number for block in self.plan.blocks if block.number not in self.hosts]


class Sweep(msgspec.Struct):
    id: str
    machines: Spread
    runs: list[RunOfSweep]


class NewRun(msgspec.Struct, frozen=True):
    request: str
    machine: str
    plan: Plan
    facts: dict[str, str]


def begin_sweep(store: Store, machines: Spread, began_at: str, runs: Sequence[NewRun]) -> Sweep:
    with store.database(writing=True) as db:
        sweep_id = _free_id(db, "sweeps", began_at)
        [[number]] = db.execute(
            "INSERT INTO sweeps (id, began_at, machines) VALUES (?, ?, ?) RETURNING number",
            (sweep_id, began_at, machines),
        ).fetchall()
        for each in runs:
            run_id = _free_id(db, "runs", began_at)
            waits = f"blocks are missing; `fairlap sweep --resume {sweep_id}` runs them"
            run = Run(each.plan, [], each.facts, {}, began_at, ended_early=waits)
            run_number = insert_run(db, run_id, "interrupted", run)
            db.execute(
                "INSERT INTO sweep_runs (sweep, run, request, machine) VALUES (?, ?, ?, ?)",
                (number, run_number, each.request, each.machine),
            )
    return load_sweep(store, sweep_id)


def load_sweep(store: Store, name: str) -> Sweep:
    """By its id, a beginning of it that fits one only, or ``last``."""
    with store.database() as db:
        sweep_id = _id_meant(db, name)
        [[number, machines]] = db.execute("SELECT number, machines FROM sweeps WHERE id = ?", (sweep_id,)).fetchall()
        found = db.execute(
            "SELECT runs.number, runs.id, request, sweep_runs.machine, runs.plan, runs.machine, runs.began_at"
            " FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run WHERE sweep = ? ORDER BY sweep_runs.number",
            (number,),
        ).fetchall()
        runs = [
            RunOfSweep(
                run,
                request,
                machine,
                checked_plan(msgspec.json.decode(plan, type=Plan)),
                msgspec.json.decode(facts, type=dict[str, str]),
                began_at,
                dict(db.execute("SELECT block, host FROM sweep_blocks WHERE run = ?", (run_number,)).fetchall()),
            )
            for run_number, run, request, machine, plan, facts, began_at in found
        ]
    if not runs:
        raise InvalidRequest(f"the runs of the sweep {sweep_id} were removed; begin a new one", code="E_SWEEP")
    return Sweep(sweep_id, machines, runs)


def store_block(
    store: Store,
    run: str,
    block: int,
    host: str,
    processes: Sequence[StoredProcess],
    wall_s: Mapping[str, float],
    roofs: Roofs | None = None,
) -> bool:
    """All of the block or nothing; False where it is stored already, and nothing is changed."""
    with store.database(writing=True) as db:
        number = _number_of(db, run, store.where)
        entered = db.execute(
            "INSERT INTO sweep_blocks (run, block, host, wall_s) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (run, block) DO NOTHING RETURNING block",
            (number, block, host, msgspec.json.encode(dict(wall_s)).decode()),
        ).fetchall()
        if not entered:
            return False
        for process in processes:
            store_process(db, number, process)
        if roofs is not None:
            found = msgspec.json.encode(roofs).decode()
            db.execute("UPDATE runs SET roofs = ? WHERE number = ? AND roofs = 'null'", (found, number))
    return True


def end_run_of_sweep(store: Store, run: str) -> None:
    """All of its blocks are stored: its rows and verdicts are computed."""
    with store.database() as db:
        number = _number_of(db, run, store.where)
        parts = db.execute("SELECT wall_s FROM sweep_blocks WHERE run = ?", (number,)).fetchall()
    wall_s: dict[str, float] = {}
    for (text,) in parts:
        for name, seconds in msgspec.json.decode(text, type=dict[str, float]).items():
            wall_s[name] = wall_s.get(name, 0.0) + seconds
    store.note_end(run, "finished", wall_s, "")
    store.compute_rows(run)


def _number_of(db: Database, run: str, where: str) -> int:
    found = db.execute("SELECT number FROM runs WHERE id = ?", (run,)).fetchone()
    if found is None:
        raise InvalidRequest(f"the run {run} is no longer in {where}; it was removed meanwhile", code="E_NO_RUN")
    return int(found[0])


def _free_id(db: Database, table: Literal["sweeps", "runs"], began_at: str) -> str:
    while True:
        drawn = run_ids.id_of(began_at)
        if db.execute(f"SELECT 1 FROM {table} WHERE id = ?", (drawn,)).fetchone() is None:
            return drawn


def _id_meant(db: Database, name: str) -> str:
    ids = [found for (found,) in db.execute("SELECT id FROM sweeps ORDER BY id DESC")]
    found = ids[:1] if name == run_ids.LAST else [each for each in ids if name and each.startswith(name)]
    if len(found) != 1:
        why = "fits several sweeps; give more of it" if found else "is not the name of a sweep in this store"
        raise InvalidRequest(f"{name!r} {why}", code="E_SWEEP")
    return str(found[0])
