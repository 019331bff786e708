"""What another tool measured of a benchmark at a commit. Never a run: no verdict of fairlap is made of it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from fairlap.secrets import without_secrets
from fairlap.store.database import Database

Tool = Literal["asv", "github-action-benchmark", "pytest-benchmark"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


class ForeignPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one benchmark, as its tool wrote it. What a file does not hold is empty."""

    tool: Tool
    project: str
    benchmark: str  # with its parameters
    parameters: dict[str, str]
    machine: str
    environment: str
    commit: str
    branch: str
    at: str  # of asv that of the commit, else that of the measurement; UTC, ISO 8601
    unit: str
    value: float
    low: float | None
    high: float | None
    interval: str  # what its ends are

    @property
    def identity(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


class ForeignSource(msgspec.Struct, frozen=True):
    """Where points came from."""

    tool: Tool
    project: str
    source: str  # the file or folder, as it was named
    imported_at: str
    points: int


def add_points(db: Database, points: Iterable[ForeignPoint], source: str, imported_at: str) -> int:
    """Store those that are not there yet, and return how many these are."""
    before = _count(db)
    db.executemany(
        "INSERT INTO foreign_points (identity, tool, project, source, imported_at, point) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (identity) DO NOTHING",
        (
            (each.identity, each.tool, each.project, without_secrets(source), imported_at, _json(each))
            for each in points
        ),
    )
    return _count(db) - before


def foreign_points(db: Database, tool: Tool) -> list[ForeignPoint]:
    """In the order of their times."""
    found = db.execute("SELECT point FROM foreign_points WHERE tool = ? ORDER BY number", (tool,))
    return sorted((msgspec.json.decode(text, type=ForeignPoint) for (text,) in found), key=lambda each: each.at)


def foreign_sources(db: Database) -> list[ForeignSource]:
    """In the order in which they were imported; none where the store is of an older fairlap and cannot be changed."""
    with suppress(sqlite3.OperationalError):
        found = db.execute(
            "SELECT tool, project, source, min(imported_at), count(*) FROM foreign_points"
            " GROUP BY tool, project, source ORDER BY min(number)"
        )
        return [ForeignSource(*cells) for cells in found]
    return []


def remove_points(db: Database, tool: Tool) -> int:
    """Remove all of a tool, and return how many these were."""
    before = _count(db)
    db.execute("DELETE FROM foreign_points WHERE tool = ?", (tool,))
    return before - _count(db)


def _count(db: Database) -> int:
    [[count]] = db.execute("SELECT count(*) FROM foreign_points").fetchall()
    return int(count)


def _json(point: ForeignPoint) -> str:
    return without_secrets(msgspec.json.encode(point).decode())
