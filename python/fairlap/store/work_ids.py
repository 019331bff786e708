"""Runs of before works had ids: their processes named works by label. Here they get the ids, once.

What is no run of fairlap's, as in a store from elsewhere, stays as it is; reading it says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.request.work import Work
from fairlap.store.database import Database

WITH_LABELS = 3
"""The format of such runs."""

WITH_IDS = 4

_OF_A_RUN = ("processes", "profiles", "compilations")


class _Planned(msgspec.Struct, frozen=True):
    works: tuple[Work, ...]


class _OlderRun(msgspec.Struct, frozen=True):
    plan: _Planned
    format: int


def with_ids(content: bytes) -> bytes:
    """Return the document of a run with the ids of its works; any other document as it is."""
    try:
        run = msgspec.json.decode(content, type=_OlderRun)
        if run.format != WITH_LABELS:
            return content
        document: dict[str, Any] = msgspec.json.decode(content)
    except NOT_THE_DOCUMENT:
        return content
    ids = _ids_by_label(run.plan.works)
    for part in _OF_A_RUN:
        document[part] = [_with_id(each, ids) for each in document.get(part, ())]
    return msgspec.json.encode({**document, "format": WITH_IDS})


def give_works_ids(db: Database) -> None:
    """In every run that has none: its works, its processes, and its rows."""
    for number, run, plan in db.execute(
        "SELECT number, id, plan FROM runs WHERE format = ? ORDER BY number", (WITH_LABELS,)
    ).fetchall():
        try:
            works = msgspec.json.decode(plan, type=_Planned).works
        except (*NOT_THE_DOCUMENT, TypeError):
            continue
        _give_ids(db, number, works)
        _give_ids_to_rows(db, run, works)
        db.execute("UPDATE runs SET format = ? WHERE number = ?", (WITH_IDS, number))


def _give_ids(db: Database, run: int, works: tuple[Work, ...]) -> None:
    ids = _ids_by_label(works)
    db.executemany(
        "UPDATE works SET id = ? WHERE run = ? AND place = ?",
        [(work.id, run, place) for place, work in enumerate(works)],
    )
    processes = db.execute("SELECT number, process FROM processes WHERE run = ?", (run,)).fetchall()
    db.executemany(
        "UPDATE processes SET process = ? WHERE number = ?", [(_as_text(text, ids), each) for each, text in processes]
    )
    profiles = db.execute("SELECT number, contestant, work, profile FROM profiles WHERE run = ?", (run,)).fetchall()
    db.executemany(
        "UPDATE profiles SET work = ?, profile = ? WHERE run = ? AND number = ? AND contestant = ? AND work = ?",
        [
            (ids.get(work, work), _as_text(text, ids), run, number, contestant, work)
            for number, contestant, work, text in profiles
        ],
    )
    compilations = db.execute("SELECT number, work, compilation FROM compilations WHERE run = ?", (run,)).fetchall()
    db.executemany(
        "UPDATE compilations SET work = ?, compilation = ? WHERE number = ?",
        [(ids.get(work, work), _as_text(text, ids), number) for number, work, text in compilations],
    )


def _give_ids_to_rows(db: Database, run: str, works: Iterable[Work]) -> None:
    """Rows of a fairlap that raced neither precisions together nor scales have neither column."""
    rows = db.execute(
        "SELECT rowid, workload, mode, batch, precision, ranked_precisions, scale FROM rows WHERE run = ?", (run,)
    ).fetchall()
    found = []
    for row, model, mode, batch, precision, ranked, scale in rows:
        precisions = _precisions(ranked) or (precision,)
        own = [
            work.id
            for work in works
            if (work.model, work.mode, work.batch, work.precisions) == (model, mode, batch, precisions)
            and ("" if work.scale is None else work.scale.text) == (scale or "")
        ]
        found += [(own[0], row)] if own else []
    db.executemany("UPDATE rows SET work_id = ? WHERE rowid = ?", found)


def _precisions(text: object) -> tuple[object, ...]:
    try:
        return tuple(msgspec.json.decode(text, type=list[str])) if isinstance(text, str) else ()
    except NOT_THE_DOCUMENT:
        return ()


def _ids_by_label(works: Iterable[Work]) -> dict[str, str]:
    return {work.label: work.id for work in works}


def _as_text(text: Any, ids: Mapping[str, str]) -> Any:
    """Return a process as JSON, with the id; whatever else is in its place as it is."""
    try:
        return msgspec.json.encode(_with_id(msgspec.json.decode(text), ids)).decode()
    except (*NOT_THE_DOCUMENT, TypeError, ValueError):
        return text


def _with_id(part: Any, ids: Mapping[str, str]) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("work"), str):
        return part
    label = part["work"]
    return {**{name: value for name, value in part.items() if name != "work"}, "work_id": ids.get(label, label)}
