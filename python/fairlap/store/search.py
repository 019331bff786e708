"""Which runs there are: their summaries, the newest first, those that a user asks for."""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import Any, Literal, get_args

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.printed_document import PrintedDocument
from fairlap.race.run import RUN_FORMAT
from fairlap.request.work_title import model_titled
from fairlap.scenarios.contract import Unit, as_time_ns
from fairlap.store.database import NUMBERS, TEXTS, Database
from fairlap.store.foreign_points import ForeignSource
from fairlap.store.runs.notes import read_tags
from fairlap.store.runs.run_ids import require_id, time_in_ids
from fairlap.store.runs.run_locks import is_held

MOST_NAMES = 50  # of contestants and frameworks that a run is asked to have

State = Literal["running", "finished", "interrupted", "killed"]


class Wanted(msgspec.Struct, frozen=True):
    """What is empty does not matter."""

    model: str = ""
    on: str = ""  # contestants as they were named, or their frameworks; runs have all of them
    since: str = ""  # UTC, ISO 8601
    before: str = ""  # the id of a run; only runs with smaller ids, which began earlier
    tag: str = ""


class Placed(msgspec.Struct, frozen=True):
    """One contestant on one work under the conditions that the verdict is about."""

    work: str
    contestant: str
    place: str | None  # None when it is not ranked
    times_the_first: float | None = (
        None  # by what is judged: how many times as long as the first, or its rate over this
    )
    work_id: str = ""  # two works of a run may have one label

    @property
    def text(self) -> str:
        """``2 jax 1.57×``."""
        shown = "" if self.times_the_first is None else f" {quantity_text.times(self.times_the_first)}"
        return f"{self.place or '-'} {self.contestant}{shown}"


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    began_at: str
    state: State
    works: tuple[str, ...]
    work_ids: tuple[str, ...] = ()  # in the same order; two works may have one label
    data: str  # what the calls were fed; empty where nothing was
    contestants: tuple[str, ...]
    frameworks: tuple[str, ...]  # of the contestants
    recorded_processes: int
    planned_processes: int
    ended_early: str
    fairlap: str
    placed: tuple[Placed, ...]  # the fastest first; empty until the run has ended
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def processes_text(self) -> str:
        """The processes that have run; of how many, only where more were to come: a decided race needs no more."""
        if self.state == "finished":
            return quantity_text.count(self.recorded_processes, "process")
        return f"{self.recorded_processes} of {quantity_text.count(self.planned_processes, 'process')}"

    @property
    def works_by_id(self) -> list[tuple[str, str]]:
        """Pairs of a label and an id, which is empty in a list that was written before it had ids."""
        return list(zip_longest(self.works, self.work_ids[: len(self.works)], fillvalue=""))

    def placed_on(self, work: str, work_id: str = "") -> list[Placed]:
        return [each for each in self.placed if each.work == work and each.work_id in ("", work_id or each.work_id)]

    def standing(self, work: str, work_id: str = "") -> str:
        """List the contestants on a work, with their places if known."""
        return ", ".join(each.text for each in self.placed_on(work, work_id)) or ", ".join(self.contestants)


class RunSummaries(PrintedDocument, frozen=True, tag="fairlap.runs/1"):
    runs: list[RunSummary]  # the newest first
    next: str | msgspec.UnsetType | None = msgspec.UNSET  # of a server: `before` of the next page; None on the last
    foreign: list[ForeignSource] | msgspec.UnsetType = msgspec.UNSET  # what other tools measured, where it was imported


def state_shown(store: Path, run: str, stored: State) -> State:
    """Choose the state to show: a run that no process records any more was killed."""
    return "killed" if stored == "running" and not is_held(store, run) else stored


def summaries(db: Database, store: Path, wanted: Wanted, limit: int | None) -> list[RunSummary]:
    runs = _runs_found(db, wanted, limit)
    for run in runs:
        require_id(run["id"])
    numbers = json.dumps([run["number"] for run in runs])
    works = _grouped(db, f"SELECT run, label FROM works WHERE run IN ({NUMBERS}) ORDER BY run, place", numbers)
    ids = _grouped(db, f"SELECT run, coalesce(id, '') FROM works WHERE run IN ({NUMBERS}) ORDER BY run, place", numbers)
    frameworks = _grouped(
        db, f"SELECT run, framework FROM contestants WHERE run IN ({NUMBERS}) ORDER BY run, place", numbers
    )
    names = _grouped(db, f"SELECT run, name FROM contestants WHERE run IN ({NUMBERS}) ORDER BY run, place", numbers)
    processes = dict(
        db.execute(f"SELECT run, count(*) FROM processes WHERE run IN ({NUMBERS}) GROUP BY run", (numbers,))
    )
    placed = _placed(db, json.dumps([run["id"] for run in runs]))
    return [
        RunSummary(
            run=run["id"],
            began_at=run["began_at"],
            state=state_shown(store, run["id"], run["state"]),
            works=tuple(works.get(run["number"], ())),
            work_ids=tuple(ids.get(run["number"], ())),
            data=run["data"],
            contestants=tuple(names.get(run["number"], ())),
            frameworks=tuple(frameworks.get(run["number"], ())),
            recorded_processes=processes.get(run["number"], 0),
            planned_processes=run["processes"],
            ended_early=run["ended_early"],
            fairlap=run["fairlap"],
            placed=tuple(placed.get(run["id"], ())),
            note=run["note"],
            tags=read_tags(run["tags"]),
        )
        for run in runs
    ]


# A plan that cannot be read is no reason to list nothing; one of an older fairlap has no data.
_DATA = "CASE WHEN json_valid(plan) THEN coalesce(json_extract(plan, '$.data'), '') ELSE '' END"


def seconds_for_a_process(db: Database, work_id: str, contestants: int) -> float | None:
    """In the newest finished run of this work, of this one alone, with so many contestants. None without one."""
    found = db.execute(
        "SELECT wall_s, (SELECT count(*) FROM processes WHERE run = runs.number) FROM runs WHERE state = 'finished'"
        " AND number IN (SELECT run FROM works WHERE id = ?)"
        " AND (SELECT count(*) FROM works WHERE run = number) = 1"
        " AND (SELECT count(*) FROM contestants WHERE run = number) = ? ORDER BY number DESC LIMIT 1",
        (work_id, contestants),
    )
    for wall_s, processes in found:
        return float(json.loads(wall_s)["whole"]) / processes if processes else None
    return None


# Works of a file are titled with its path and the sizes that were bound: models/x.onnx[batch=8].
_OF_FILE = "model = ? OR instr('/' || model, '/' || ? || '[') > 0 OR substr('/' || model, -length(?) - 1) = '/' || ?"


def _runs_found(db: Database, wanted: Wanted, limit: int | None) -> list[dict[str, Any]]:
    """Along the index of ids, from the newest, until there are enough; only then are runs themselves read.

    The plus keeps SQLite from reading all runs of a common framework and sorting them: five seconds from a cold disk.
    """
    conditions, values = ["TRUE"], []
    model, of_framework = model_titled(wanted.model)
    if model:
        is_file = bool(PurePath(model).suffix)
        conditions.append(f"+number IN (SELECT run FROM works WHERE {_OF_FILE if is_file else 'model = ?'})")
        values += [model] * (4 if is_file else 1)
    if of_framework:
        conditions.append("+number IN (SELECT run FROM contestants WHERE framework = ?)")
        values.append(of_framework)
    names = list(filter(None, wanted.on.split(",")))
    if len(names) > MOST_NAMES:
        raise InvalidRequest(f"name at most {MOST_NAMES} contestants or frameworks (got {len(names)})")
    for name in names:
        conditions.append(
            "+number IN (SELECT run FROM contestants WHERE name = ?"
            " UNION ALL SELECT run FROM contestants WHERE framework = ?)"
        )
        values += [name, name]
    if wanted.since:
        conditions.append("id >= ?")
        values.append(time_in_ids(wanted.since))
    if wanted.before:
        conditions.append("id < ?")
        values.append(wanted.before)
    if wanted.tag:
        conditions.append("tags != replace(tags, ?, '')")  # with its quotation marks, so that it is a whole one
        values.append(msgspec.json.encode(wanted.tag).decode())
    fields = ("number", "id", "began_at", "state", "processes", "ended_early", "fairlap", "note", "tags")
    found = db.execute(
        f"SELECT {', '.join(fields)}, {_DATA} FROM runs WHERE number IN"
        f" (SELECT number FROM runs WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?) ORDER BY id DESC",
        (*values, sys.maxsize if limit is None else limit),
    )
    return [dict(zip((*fields, "data"), each, strict=True)) for each in found]


def _grouped(db: Database, query: str, *values: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for run, text in db.execute(query, values):
        found.setdefault(run, []).append(text)
    return found


def _placed(db: Database, ids: str) -> dict[str, list[Placed]]:
    """Read the places; controlled rows come first in a run, and as-found ones count where a work has no others."""
    found: dict[str, list[Placed]] = {}
    headline: dict[tuple[str, str], str] = {}
    labels = {
        (run, work_id): label
        for run, work_id, label in db.execute(
            f"SELECT runs.id, works.id, label FROM runs JOIN works ON run = number WHERE runs.id IN ({TEXTS})", (ids,)
        )
    }
    firsts: dict[tuple[str, str], tuple[str, float]] = {}
    there = {column[0] for column in db.execute("SELECT * FROM rows LIMIT 0").description}
    judged = ", ".join(
        name if name in there else "NULL" for name in ("judged", "judged_unit", "baseline", "ratio")
    )  # of an older fairlap
    for run, conditions, contestant, place, value, unit, baseline, ratio, work_id in db.execute(
        f"SELECT run, conditions, contestant, place, {judged}, work_id FROM rows WHERE run IN ({TEXTS}) ORDER BY rowid",
        (ids,),
    ):
        label = labels.get((run, work_id), "")
        if headline.setdefault((run, work_id), conditions) == conditions:
            time_ns = _time_ns(value, unit) if place else None
            times = None
            if time_ns is not None:
                first, first_ns = firsts.setdefault((run, work_id), (contestant, time_ns))
                # Of the verdict, which pairs blocks; medians are of all processes, and may show another ratio.
                paired = baseline == first and isinstance(ratio, float) and ratio > 0
                times = None if contestant == first else ratio if paired else time_ns / first_ns
            found.setdefault(run, []).append(Placed(label, contestant, place, times, work_id or ""))
    return found


def _time_ns(value: object, unit: Unit) -> float | None:
    """None where it is absent, and where a store of another program has something else there."""
    known = isinstance(value, float) and value > 0 and unit in get_args(Unit)
    return as_time_ns(value, unit) if known else None  # type: ignore[arg-type]


def newest_answers(db: Database, model: str) -> list[str]:
    """Find the newest run with rows of each set of works, contestants, threads and device, the newest first.

    Runs in another format are left out: this fairlap can neither read nor repeat them.
    """
    works = _listed(db, "SELECT run, coalesce(id, label) FROM works ORDER BY run, place")
    contestants = _listed(db, "SELECT run, name FROM contestants ORDER BY run, place")
    settings = ", ".join(f"json_extract(plan, '$.{name}')" for name in ("threads", "device", "data"))
    found = db.execute(
        f"SELECT number, id, {settings} FROM runs WHERE format = ? AND json_valid(plan) AND state != 'running'"
        " AND (? = '' OR number IN (SELECT run FROM works WHERE model = ?))"
        " AND EXISTS (SELECT 1 FROM rows WHERE rows.run = runs.id) ORDER BY id DESC",
        (RUN_FORMAT, model, model),
    )
    newest: dict[tuple[object, ...], str] = {}
    for number, run, *own in found:
        newest.setdefault((works.get(number), contestants.get(number), *own), run)
    return list(newest.values())


def _listed(db: Database, query: str) -> dict[int, tuple[str, ...]]:
    return {run: tuple(texts) for run, texts in _grouped(db, query).items()}
