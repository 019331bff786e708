"""A run copied from one store to another, in one transaction: all of it is there afterwards, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from fairlap.store.database import NUMBERS, Database
from fairlap.store.file_store import Store
from fairlap.store.shared.content import RunContent, SamplesKept
from fairlap.store.shared.shared_store import SharedStore
from fairlap.store.tables import BYTES_OF_A_SAMPLE, keep_rows, kept_rows, whole

_BYTES_AT_ONCE = 4_000_000


def copy_run(content: RunContent, source: Store, target: Store, run: str, replaced: RunContent | None) -> None:
    """Copy a run, unless something else has taken the place of ``replaced`` in the meantime: that stays."""
    with source.database() as old, target.database(writing=True) as new:
        if replaced:
            new.execute("DELETE FROM runs WHERE id = ? AND number = ?", (run, replaced.number))
        [[number]] = _insert(new, "runs", [{**content.run, "id": run}], returning="number")
        for table, entries in content.tables.items():
            _insert(new, table, [{"run": number, **entry} for entry in entries])
        _copy_processes(content, source, new, number)
        rows = kept_rows(old, content.run["id"])
        keep_rows(new, [msgspec.structs.replace(row, run=run) for row in rows or ()])
        if isinstance(target, SharedStore):
            new.execute("UPDATE runs SET content = ? WHERE number = ?", (content.digest, number))
    if not rows:
        target.compute_rows(run)


def _copy_processes(content: RunContent, source: Store, new: Database, run: int) -> None:
    fields = ("run", "block", "contestant", "outcome", "process")
    _insert(new, "processes", [dict(zip(fields, (run, *each), strict=True)) for each in content.processes.values()])
    found = new.execute("SELECT block, contestant, number FROM processes WHERE run = ?", (run,))
    numbers = {(block, contestant): number for block, contestant, number in found}
    for chunk in _chunks(content.samples):
        with source.database() as old:  # damage in it is reported as damage of this store
            found = old.execute(
                f"SELECT process, quantity, count, crc32, ns FROM samples WHERE process IN ({NUMBERS})"
                " ORDER BY process, number",
                (json.dumps(sorted({each.process for each in chunk})),),
            )
            samples = [
                (numbers[content.processes[process][:2]], quantity, count, check, whole(ns, check))
                for process, quantity, count, check, ns in found
            ]
        new.executemany("INSERT INTO samples (process, quantity, count, crc32, ns) VALUES (?, ?, ?, ?, ?)", samples)


def _chunks(samples: tuple[SamplesKept, ...]) -> Iterator[list[SamplesKept]]:
    """Whole processes, of a few megabytes together: a slow line brings each of them within the time for an answer."""
    chunk: list[SamplesKept] = []
    size = 0
    for each in samples:
        if size >= _BYTES_AT_ONCE and each.process != chunk[-1].process:
            yield chunk
            chunk, size = [], 0
        chunk.append(each)
        size += each.count * BYTES_OF_A_SAMPLE
    if chunk:
        yield chunk


def _insert(db: Database, table: str, entries: list[dict[str, Any]], returning: str = "") -> list[Any]:
    if not entries:
        return []
    names = ", ".join(entries[0])
    statement = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(entries[0]))})"
    if returning:
        return db.execute(f"{statement} RETURNING {returning}", tuple(entries[0].values())).fetchall()
    db.executemany(statement, [tuple(entry.values()) for entry in entries])
    return []
