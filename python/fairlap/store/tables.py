"""Runs, processes, samples and rows in the tables of the store: written and read back.

Samples are little-endian float64, as the worker sent them, and not compressed: zlib takes a tenth off the samples of
real races, seldom a third, and short ones grow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.roofs import Roofs
from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import checked_plan
from fairlap.race.run import RUN_FORMAT, Run, checked_run
from fairlap.results.flat_row import columns, flat
from fairlap.results.row import Row
from fairlap.scenarios.process_result import ProcessResult
from fairlap.secrets import without_secrets
from fairlap.store.database import Database
from fairlap.store.errors import CHANGED, StoreError
from fairlap.store.runs.run_ids import utc_text

if TYPE_CHECKING:
    import numpy as np


def _json(value: Any) -> str:
    return without_secrets(msgspec.json.encode(value).decode())


def insert_run(db: Database, run_id: str, state: str, run: Run) -> int:
    """Without its processes; a run from a file has profiles and compilations."""
    plan = run.plan
    [[number]] = db.execute(
        "INSERT INTO runs (id, began_at, state, ended_early, processes, fairlap, format, plan, machine, wall_s,"
        " roofs, tags, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            run_id,
            utc_text(run.began_at) or run.began_at,
            state,
            run.ended_early,
            plan.process_count(),
            run.fairlap,
            run.format,
            *(_json(each) for each in (plan, run.machine, run.wall_s, run.roofs, run.tags)),
            without_secrets(run.note),
        ),
    ).fetchall()
    db.executemany(
        "INSERT INTO works (run, place, id, label, model, batch, mode, precision) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (number, place, work.id, work.label, work.model, work.batch, work.mode, work.precision)
            for place, work in enumerate(plan.works)
        ),
    )
    db.executemany(
        "INSERT INTO contestants (run, place, name, framework) VALUES (?, ?, ?, ?)",
        ((number, place, name.text, name.framework or name.program) for place, name in enumerate(plan.contestants)),
    )
    for profile in run.profiles:
        store_profile(db, number, profile)
    for compilation in run.compilations:
        store_compilation(db, number, compilation)
    return int(number)


def stored_run(db: Database, run: str) -> Run:
    number, began_at, ended_early, fairlap, version, note, *texts = db.execute(
        "SELECT number, began_at, ended_early, fairlap, format, note, plan, machine, wall_s, roofs, tags FROM runs"
        " WHERE id = ?",
        (run,),
    ).fetchone()
    if version != RUN_FORMAT:
        raise StoreError(f"the run {run} has format {version}; this fairlap reads {RUN_FORMAT}")
    plan = msgspec.json.decode(texts[0], type=Plan)
    machine = msgspec.json.decode(texts[1], type=dict[str, str])
    wall_s = msgspec.json.decode(texts[2], type=dict[str, float])
    roofs = msgspec.json.decode(texts[3], type=Roofs | None)
    tags = msgspec.json.decode(texts[4], type=tuple[str, ...])
    processes, profiles = stored_processes(db, number), stored_profiles(db, number)
    facts = (machine, wall_s, began_at, ended_early, fairlap, version)
    found = (processes, *facts, profiles, stored_compilations(db, number), roofs, note, tags)
    return checked_run(Run(plan, *found))


def stored_plan_and_machine(db: Database, run: str) -> tuple[Plan, dict[str, str]]:
    plan, machine = db.execute("SELECT plan, machine FROM runs WHERE id = ?", (run,)).fetchone()
    return checked_plan(msgspec.json.decode(plan, type=Plan)), msgspec.json.decode(machine, type=dict[str, str])


def require_no_sweep(db: Database, run: str) -> None:
    """Blocks of a sweep may have been run by several machines, so one of them does not resume the run by itself."""
    found = db.execute(
        "SELECT sweeps.id FROM sweeps JOIN sweep_runs ON sweep_runs.sweep = sweeps.number"
        " JOIN runs ON runs.number = sweep_runs.run WHERE runs.id = ?",
        (run,),
    ).fetchone()
    if found is not None:
        sweep = f"`fairlap sweep --resume {found[0]}`"
        raise InvalidRequest(f"the run {run} is part of a sweep; resume it with {sweep}", code="E_RESUME")


BYTES_OF_A_SAMPLE = 8


class StoredProcess(msgspec.Struct, frozen=True):
    """As it was when it was handed over: processes and samples may change in the caller's hands afterwards."""

    block: int
    contestant: str
    outcome: str
    process: str
    samples: dict[str, bytes]


def stored_process(process: ProcessResult, samples_ns: Mapping[str, np.ndarray] | None = None) -> StoredProcess:
    raw = {name: _raw(values) for name, values in (samples_ns or {}).items()}
    return StoredProcess(process.block, process.contestant, process.outcome, _json(process), raw)


def _raw(values: np.ndarray) -> bytes:
    import numpy as np

    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def store_process(db: Database, run: int, kept: StoredProcess) -> None:
    """One that is stored again replaces what was known of it; its samples stay unless there are new ones."""
    [[number]] = db.execute(
        "INSERT INTO processes (run, block, contestant, outcome, process) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run, block, contestant) DO UPDATE SET outcome = excluded.outcome, process = excluded.process"
        " RETURNING number",
        (run, kept.block, kept.contestant, kept.outcome, kept.process),
    ).fetchall()
    db.executemany(
        "INSERT INTO samples (process, quantity, count, crc32, ns) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (process, quantity)"
        " DO UPDATE SET count = excluded.count, crc32 = excluded.crc32, ns = excluded.ns",
        ((number, name, len(raw) // BYTES_OF_A_SAMPLE, crc32(raw), raw) for name, raw in kept.samples.items()),
    )


def remove_other_blocks(db: Database, run: int, blocks: Set[int]) -> None:
    """With their samples, which would otherwise stay with the processes that take their place."""
    found = {block for (block,) in db.execute("SELECT DISTINCT block FROM processes WHERE run = ?", (run,))}
    db.executemany("DELETE FROM processes WHERE run = ? AND block = ?", [(run, block) for block in found - blocks])


def stored_processes(db: Database, run: int) -> list[ProcessResult]:
    """In the order in which they were stored."""
    found = db.execute("SELECT process FROM processes WHERE run = ? ORDER BY number", (run,))
    return [msgspec.json.decode(text, type=ProcessResult) for (text,) in found]


def store_profile(db: Database, run: int, result: ProfileResult) -> None:
    db.execute(
        "INSERT INTO profiles (run, number, contestant, work, profile) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run, number, contestant, work) DO UPDATE SET profile = excluded.profile",
        (run, *result.key, _json(result)),
    )


def stored_profiles(db: Database, run: int) -> list[ProfileResult]:
    """In the order in which they were stored."""
    found = db.execute("SELECT profile FROM profiles WHERE run = ? ORDER BY rowid", (run,))
    return [msgspec.json.decode(text, type=ProfileResult) for (text,) in found]


def store_compilation(db: Database, run: int, found: CompilationResult) -> None:
    db.execute(
        "INSERT INTO compilations (run, work, contestant, compilation) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run, work, contestant) DO UPDATE SET compilation = excluded.compilation",
        (run, found.work_id, found.contestant, _json(found)),
    )


def stored_compilations(db: Database, run: int) -> list[CompilationResult]:
    found = db.execute("SELECT compilation FROM compilations WHERE run = ? ORDER BY number", (run,))
    return [msgspec.json.decode(text, type=CompilationResult) for (text,) in found]


def kept_samples(db: Database, run: int, block: int, contestant: str) -> dict[str, bytes] | None:
    """By quantity, the headline first; None when there is no such process."""
    process = db.execute(
        "SELECT number FROM processes WHERE run = ? AND block = ? AND contestant = ?", (run, block, contestant)
    ).fetchone()
    if process is None:
        return None
    found = db.execute("SELECT quantity, ns, crc32 FROM samples WHERE process = ? ORDER BY number", process)
    return {quantity: whole(raw, check) for quantity, raw, check in found}


def all_samples(db: Database, run: int) -> list[tuple[int, str, str, bytes]]:
    """List block, contestant, quantity and samples, in the order in which they were stored."""
    found = db.execute(
        "SELECT processes.block, processes.contestant, samples.quantity, samples.ns, samples.crc32 FROM samples"
        " JOIN processes ON processes.number = samples.process WHERE processes.run = ? ORDER BY samples.number",
        (run,),
    )
    return [(*whose, whole(raw, check)) for *whose, raw, check in found]


def whole(raw: bytes, check: int) -> bytes:
    if not isinstance(raw, bytes) or crc32(raw) != check:
        raise sqlite3.DatabaseError(CHANGED)
    return raw


def keep_rows(db: Database, rows: Iterable[Row]) -> None:
    names = ", ".join(f'"{column.name}"' for column in columns())
    places = ", ".join("?" * len(columns()))
    db.executemany(f"INSERT INTO rows ({names}) VALUES ({places})", (tuple(flat(row).values()) for row in rows))


def kept_rows(db: Database, run: str) -> list[Row] | None:
    """Read the rows, or None where they are to be computed again from the processes.

    That is where an older fairlap stored them with other columns, or a cell is not what fairlap wrote.
    """
    found = db.execute("SELECT * FROM rows WHERE run = ? ORDER BY rowid", (run,))
    names = [column[0] for column in found.description]
    try:
        return [row_of(dict(zip(names, cells, strict=True))) for cells in found]
    except (KeyError, ValueError, TypeError):  # msgspec's own error is a ValueError, as is an absent value without why
        return None


def row_of(cells: Mapping[str, Any]) -> Row:
    """Invert ``flat``."""
    fields: dict[str, Any] = {}
    for column in columns():
        cell = cells[column.name]
        if column.kind == "structure":
            fields[column.field] = msgspec.json.decode(cell) if cell is not None else None
        elif column.name == column.field:
            bounds = {end: cells.get(f"{column.name}_{end}") for end in ("low", "high")}
            estimate = f"{column.name}_low" in cells and cell is not None
            fields[column.field] = {"value": cell, **bounds} if estimate else cell
    return msgspec.convert(fields, Row)
