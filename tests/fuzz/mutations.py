"""Valid files changed in their bytes, in their JSON, in the members of an archive or in the cells of a database."""

from __future__ import annotations

import copy
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

ODD: list[Any] = [
    None, True, 0, -1, 1, 2, 255, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308, -1e308, 5e-324,
    float("nan"), float("inf"), "", "x", "\0", "\n", "\x1b[31m", "\ud800", "../../x", "/etc/passwd", "é" * 300,
    "a" * 5000, "20260101-000000-aaa", [], {}, [[]], [None], {"": None}, [0] * 300, "NaN", "1e400", "<script>",
]  # fmt: skip

Mutation = Callable[[bytes, Random], bytes]


def in_bytes(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        place = random.randrange(len(changed) + 1)
        match random.randrange(6):
            case 0 if changed:
                changed[place % len(changed)] ^= 1 << random.randrange(8)
            case 1 if changed:
                changed[place % len(changed)] = random.choice((0, 1, 10, 34, 127, 128, 255))
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + random.choice((1, 2, 8, 100))]
            case 4:
                changed[place:place] = random.choice((b"\0", b"\xff" * 8, b"9" * 20, b"{", b'"', b"[" * 2000))
            case _:
                other = random.randrange(len(changed) + 1)
                changed[place:place] = changed[other : other + random.choice((1, 8, 200))]
    return bytes(changed)


def in_json(content: bytes, random: Random) -> bytes:
    """One to three values or names are others. NaN and lone surrogates are written too, as other writers do."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return in_bytes(content, random)
    for _ in range(random.choice((1, 1, 2, 3))):
        document = _changed(document, random, random.randrange(1, 9))
    return json.dumps(document).encode()


def _odd(random: Random) -> Any:
    return copy.deepcopy(random.choice(ODD))


def _changed(value: Any, random: Random, depth: int) -> Any:
    if depth and isinstance(value, dict) and value:
        key = random.choice(list(value))
        if depth == 1 and random.random() < 0.3:
            taken = value.pop(key)
            if random.random() < 0.5:
                value[str(random.choice(ODD))] = taken
        else:
            value[key] = _changed(value[key], random, depth - 1)
        return value
    if depth and isinstance(value, list) and value:
        place = random.randrange(len(value))
        if depth == 1 and random.random() < 0.4:
            value[place:place] = random.choice(([value[place]], value[place:][:3], [_odd(random)]))
        elif depth == 1 and random.random() < 0.3:
            del value[place]
        else:
            value[place] = _changed(value[place], random, depth - 1)
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and random.random() < 0.5:
        return random.choice((-value, value + 1, value * 2**40, value / 3, str(value)))
    return _odd(random)


def in_lines(content: bytes, random: Random) -> bytes:
    """Of a stream: one line of JSON is another."""
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    lines[place] = in_json(lines[place], random)
    return b"\n".join(lines)


def in_archive(content: bytes, random: Random) -> bytes:
    """One member is another, is missing, is there twice, or has an odd name. Names and hashes of others stay."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(member.filename, archive.read(member)) for member in archive.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError):
        return in_bytes(content, random)
    if not members:
        return in_bytes(content, random)
    place = random.randrange(len(members))
    name, data = members[place]
    match random.randrange(8):
        case 0:
            del members[place]
        case 1:
            members.append((name, data[::-1]))
        case 2:
            members[place] = (str(random.choice(("../x", "/x", "a\\b", "\x1b[2J", "a" * 5000, ""))), data)
        case 3:
            members[place] = (name, b"")
        case _:
            members[place] = (name, in_json(data, random) if random.random() < 0.7 else in_bytes(data, random))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            with suppress(ValueError, UnicodeError):
                archive.writestr(name or "empty", data)
    return out.getvalue()


def in_database(content: bytes, random: Random) -> bytes:
    """One to three cells are others, or statements were run on it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed.sqlite"
        path.write_bytes(content)
        try:
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA ignore_check_constraints = ON")
                db.execute("PRAGMA journal_mode = DELETE")
                tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                for _ in range(random.choice((1, 1, 2, 3))):
                    _change_a_cell(db, random.choice(tables), random)
                db.commit()
        except (sqlite3.Error, IndexError, UnicodeEncodeError, OverflowError):
            return in_bytes(content, random)
        return path.read_bytes()


def _change_a_cell(db: sqlite3.Connection, table: str, random: Random) -> None:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
    column = random.choice(columns)
    found = db.execute(f'SELECT "{column}" FROM "{table}" LIMIT 1').fetchone()
    old = found[0] if found else None
    value = random.choice([each for each in ODD if not isinstance(each, (list, dict))] + [b"\x00\xff", b""])
    if isinstance(old, str) and old[:1] in "[{" and random.random() < 0.8:
        value = in_json(old.encode(), random).decode("utf-8", "replace")
    elif isinstance(old, bytes):
        value = in_bytes(old, random)
    db.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))
