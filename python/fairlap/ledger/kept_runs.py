"""A run's plan and circumstances in the store, with what it can be found by."""

from __future__ import annotations

import sqlite3

import msgspec

from fairlap.ledger.run_ids import utc_text
from fairlap.race.saving import SavedRun


def insert_run(db: sqlite3.Connection, run_id: str, state: str, run: SavedRun) -> int:
    """Without its laps."""
    plan = run.plan
    cursor = db.execute(
        "INSERT INTO runs (id, began_at, state, ended_early, processes, fairlap, format, plan, machine, wall_s)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            utc_text(run.began_at) or run.began_at,
            state,
            run.ended_early,
            plan.processes(),
            run.fairlap,
            run.format,
            *(msgspec.json.encode(each).decode() for each in (plan, run.machine, run.wall_s)),
        ),
    )
    number = cursor.lastrowid
    assert number is not None
    db.executemany(
        "INSERT INTO works (run, place, label, model, batch, mode, precision) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (number, place, work.label, work.model, work.batch, work.mode, work.precision)
            for place, work in enumerate(plan.works)
        ),
    )
    db.executemany(
        "INSERT INTO contestants (run, place, name, framework) VALUES (?, ?, ?, ?)",
        ((number, place, name.text, name.framework or name.program) for place, name in enumerate(plan.contestants)),
    )
    return number
