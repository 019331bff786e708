"""What a run holds, apart from its samples and its id: enough to say how the same run in another store differs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from fairlap.store.database import Database
from fairlap.store.shared.dialect import cell

TABLES = {"works": "place", "contestants": "place", "profiles": "rowid", "compilations": "number"}
"""Those whose entries are carried as they are, and their order. Processes, samples and rows are carried apart."""

_OWN_NUMBERS = {"runs": "number", "compilations": "number"}
_NOT_CARRIED = {"run", "rowid", "content"}

Relation = Literal["same", "newer", "older", "other"]


class SamplesKept(msgspec.Struct, frozen=True):
    """Without the samples themselves."""

    process: int  # its number in this store
    quantity: str
    count: int
    crc32: int


class RunContent(msgspec.Struct, frozen=True, dict=True):
    number: int
    run: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]
    processes: dict[int, tuple[int, str, str, str]]  # by number: block, contestant, outcome, JSON
    samples: tuple[SamplesKept, ...]

    @cached_property
    def digest(self) -> str:
        """The same in every store."""
        parts = [
            sorted((name, value) for name, value in self.run.items() if name != "id"),
            [[sorted(entry.items()) for entry in self.tables[table]] for table in TABLES],
            list(self.processes.values()),
            [[*self.processes[each.process][:2], each.quantity, each.count, each.crc32] for each in self.samples],
        ]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    @cached_property
    def measured(self) -> set[tuple[object, ...]]:
        """Its processes, each with the checksums of its samples."""
        samples: dict[int, list[tuple[str, int]]] = {}
        for each in self.samples:
            samples.setdefault(each.process, []).append((each.quantity, each.crc32))
        return {(*process, *samples.get(number, ())) for number, process in self.processes.items()}

    @property
    def identity(self) -> tuple[str, str]:
        return self.run["began_at"], self.run["plan"]

    @property
    def is_finished(self) -> bool:
        return bool(self.run["state"] == "finished")

    @property
    def extent(self) -> tuple[bool, int, int]:
        found = len(self.tables["profiles"]) + len(self.tables["compilations"])
        return self.is_finished, len(self.processes), found


def content_of(db: Database, run: str) -> RunContent | None:
    """None when there is no such run."""
    found = _entries(db, "runs", "SELECT * FROM runs WHERE id = ?", (run,))
    if not found:
        return None
    [[number]] = db.execute("SELECT number FROM runs WHERE id = ?", (run,)).fetchall()
    processes = db.execute(
        "SELECT number, block, contestant, outcome, process FROM processes WHERE run = ? ORDER BY number", (number,)
    )
    cells = {place: (block, *map(cell, texts)) for place, block, *texts in processes}
    samples = db.execute(
        "SELECT samples.process, quantity, count, crc32 FROM samples JOIN processes"
        " ON processes.number = samples.process WHERE processes.run = ? ORDER BY samples.process, samples.number",
        (number,),
    )
    tables = {
        table: _entries(db, table, f"SELECT * FROM {table} WHERE run = ? ORDER BY {order}", (number,))
        for table, order in TABLES.items()
    }
    kept = tuple(SamplesKept(*each) for each in samples)
    return RunContent(number, found[0], tables, cells, kept)


def relation(ours: RunContent, theirs: RunContent) -> Relation:
    """Of two runs with one id: whether ours is the same, has gone on, is a part of theirs, or is another run."""
    if ours.digest == theirs.digest:
        return "same"
    own, other = ours.measured, theirs.measured
    if ours.identity != theirs.identity or (own and other and not own & other):
        return "other"
    if ours.extent == theirs.extent:
        return "same" if own == other else "other"
    if ours.extent > theirs.extent:
        return "other" if theirs.is_finished and not other <= own else "newer"
    return "other" if ours.is_finished and not own <= other else "older"


def _entries(db: Database, table: str, query: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    found = db.execute(query, values)
    names = [column[0] for column in found.description]
    dropped = {*_NOT_CARRIED, _OWN_NUMBERS.get(table)}
    return [
        {name: cell(value) for name, value in zip(names, cells, strict=True) if name not in dropped} for cells in found
    ]
