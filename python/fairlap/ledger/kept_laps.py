"""Laps in the store, each with its raw samples: little-endian float64, as the worker sent them.

Not compressed: zlib takes a tenth off the samples of real races, seldom a third, and short ones grow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from fairlap.ledger.store_errors import CHANGED
from fairlap.race.kept_before import measured
from fairlap.race.laps import Lap

if TYPE_CHECKING:
    import numpy as np

BYTES_OF_A_SAMPLE = 8


class LapToKeep(msgspec.Struct, frozen=True):
    """As it was when it was handed over: laps and samples may change in the caller's hands afterwards."""

    block: int
    contestant: str
    outcome: str
    lap: str
    samples: dict[str, bytes]


def lap_to_keep(lap: Lap, samples_ns: Mapping[str, np.ndarray] | None = None) -> LapToKeep:
    raw = {name: _raw(values) for name, values in (samples_ns or {}).items()}
    return LapToKeep(lap.block, lap.contestant, lap.outcome, msgspec.json.encode(lap).decode(), raw)


def _raw(values: np.ndarray) -> bytes:
    import numpy as np

    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def keep_lap(db: sqlite3.Connection, run: int, kept: LapToKeep) -> None:
    """One that is kept again replaces what was known of it; its samples stay unless there are new ones."""
    [[number]] = db.execute(
        "INSERT INTO laps (run, block, contestant, outcome, lap) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run, block, contestant) DO UPDATE SET outcome = excluded.outcome, lap = excluded.lap"
        " RETURNING number",
        (run, kept.block, kept.contestant, kept.outcome, kept.lap),
    ).fetchall()
    db.executemany(
        "INSERT INTO samples (lap, quantity, count, crc32, ns) VALUES (?, ?, ?, ?, ?) ON CONFLICT (lap, quantity)"
        " DO UPDATE SET count = excluded.count, crc32 = excluded.crc32, ns = excluded.ns",
        ((number, name, len(raw) // BYTES_OF_A_SAMPLE, crc32(raw), raw) for name, raw in kept.samples.items()),
    )


def keep_only(db: sqlite3.Connection, run: int, laps: Sequence[Lap]) -> None:
    """Others go with their samples, which would else stay with a lap that takes their place. New ones have none."""
    wanted = {measured(lap) for lap in laps}
    found = db.execute("SELECT number, lap FROM laps WHERE run = ?", (run,)).fetchall()
    stored = {number: msgspec.json.decode(text, type=Lap) for number, text in found}
    gone = [(number,) for number, lap in stored.items() if measured(lap) not in wanted]
    db.executemany("DELETE FROM laps WHERE number = ?", gone)
    same = {msgspec.json.encode(lap) for lap in stored.values()}
    for lap in laps:
        if msgspec.json.encode(lap) not in same:
            keep_lap(db, run, lap_to_keep(lap))


def kept_laps(db: sqlite3.Connection, run: int) -> list[Lap]:
    """In the order in which they were kept."""
    found = db.execute("SELECT lap FROM laps WHERE run = ? ORDER BY number", (run,))
    return [msgspec.json.decode(text, type=Lap) for (text,) in found]


def kept_samples(db: sqlite3.Connection, run: int, block: int, contestant: str) -> dict[str, bytes] | None:
    """By quantity, the headline first; None when there is no such lap."""
    lap = db.execute(
        "SELECT number FROM laps WHERE run = ? AND block = ? AND contestant = ?", (run, block, contestant)
    ).fetchone()
    if lap is None:
        return None
    found = db.execute("SELECT quantity, ns, crc32 FROM samples WHERE lap = ? ORDER BY number", lap)
    return {quantity: whole(raw, check) for quantity, raw, check in found}


def whole(raw: bytes, check: int) -> bytes:
    if crc32(raw) != check:
        raise sqlite3.DatabaseError(CHANGED)
    return raw
