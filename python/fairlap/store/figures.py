"""A figure of each contestant in each run of a model, what it was judged by or another one: what a history is of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import msgspec

from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate, time_ns
from fairlap.results.estimates import times
from fairlap.results.quantities.row_quantities import TIMES, RowQuantity, quantity_columns
from fairlap.scenarios.added import JudgedBefore
from fairlap.scenarios.contract import scenarios
from fairlap.store.database import Database
from fairlap.store.runs.run_ids import time_in_ids

_KEY = ("work_id", "precision", "batch", "data", "conditions", "threads", "device")
_JUDGED = ("judged", "judged_low", "judged_high", "judged_by", "judged_unit")


class _Asked(msgspec.Struct, frozen=True, dict=True):
    """What defines the figures of a run and is in its plan only, not in its rows."""

    works: tuple[Work, ...] = ()
    count_evaluation: bool = False

    @cached_property
    def by_id(self) -> dict[str, Work]:
        return {work.id: work for work in self.works}


class RecordedFigure(msgspec.Struct, frozen=True):
    """One contestant on one work in one run."""

    run: str
    began_at: str
    contestant: str
    framework: str
    precision: str
    version: str
    work_id: str
    work: str  # what is done, for people
    data: str  # what the calls were fed; empty where nothing was
    conditions: str
    threads: int | None  # unknown of another tool
    device: str
    quantity: str
    unit: str  # of a time or a rate (ns, s, 1/s), or of another quantity (B, J, W, share, or none)
    figure: Estimate  # in the unit

    @property
    def compared(self) -> Estimate:
        """What a ratio is of: times and rates as nanoseconds, other quantities as they are."""
        return time_ns(self.figure, self.unit) if self.unit in TIMES else self.figure  # type: ignore[arg-type]


def recorded_figures(db: Database, model: str, since: str, quantity: RowQuantity | None = None) -> list[RecordedFigure]:
    """In the order of the runs: what contestants were judged by, or another quantity.

    Only contestants that finished; what has no figure is left out.
    """
    before = [f"{each.column}{end}" for each in _before() for end in ("", "_low", "_high")]
    read = [name for each in _before() for name in each.reads] + list(quantity.read if quantity else ())
    names = ("run", "recorded_at", "contestant", "framework", "version", *_KEY, *_JUDGED, *read)
    there = {column[0] for column in db.execute("SELECT * FROM rows LIMIT 0").description}
    listed = ", ".join(f'"{name}"' if name in there else "NULL" for name in (*names, *before))
    found = db.execute(
        f"SELECT {listed} FROM rows WHERE workload = ? AND run >= ? AND outcome = 'finished' ORDER BY run, rowid",
        (model, time_in_ids(since) if since else ""),
    )
    asked = _asked(db, model, since)
    figures = []
    for cells in found:
        cell = dict(zip((*names, *before), cells, strict=True))
        plan = asked.get(cell["run"], _Asked())
        work = plan.by_id.get(cell["work_id"])
        found_here = _judged_figure(cell, plan) if quantity is None else _other_figure(cell, quantity)
        if work is None or found_here is None:
            continue
        anywhere = work.on_any_threads()
        figures.append(
            RecordedFigure(
                cell["run"], cell["recorded_at"], cell["contestant"], cell["framework"], cell["precision"],
                cell["version"] or "", anywhere.id, anywhere.what_is_done, cell["data"] or "", cell["conditions"],
                cell["threads"], cell["device"], *found_here,
            )
        )  # fmt: skip
    return figures


_Figure = tuple[str, str, Estimate]
"""Of what, in which unit, and what it is."""


def _judged_figure(cell: Mapping[str, Any], plan: _Asked) -> _Figure | None:
    return _judged(cell) if cell["judged_by"] else _judged_before(cell, evaluation_counts=plan.count_evaluation)


def _other_figure(cell: Mapping[str, Any], quantity: RowQuantity) -> _Figure | None:
    found = quantity.value(cell)
    return None if found is None else (quantity.title, quantity.unit, found)


def quantities_held(db: Database, model: str, since: str) -> list[str]:
    """List the columns of quantities that a row of the model has a figure in."""
    there = {column[0] for column in db.execute("SELECT * FROM rows LIMIT 0").description}
    names = [each.name for each in quantity_columns() if each.name in there]
    listed = ", ".join(f'count("{name}")' for name in names)
    counts = db.execute(
        f"SELECT {listed} FROM rows WHERE workload = ? AND run >= ? AND outcome = 'finished'",
        (model, time_in_ids(since) if since else ""),
    ).fetchone()
    return [name for name, count in zip(names, counts, strict=True) if count]


def _judged(cell: Mapping[str, Any]) -> _Figure | None:
    if cell["judged"] is None:
        return None
    found = Estimate(cell["judged"], cell["judged_low"], cell["judged_high"])
    return cell["judged_by"], cell["judged_unit"], found


def _before() -> tuple[JudgedBefore, ...]:
    return tuple(each for scenario in scenarios() for each in scenario.judged_before)


def _judged_before(cell: Mapping[str, Any], *, evaluation_counts: bool) -> _Figure | None:
    had = next((each for each in _before() if cell[each.column] and each.counts(cell)), None)
    if had is None:
        return None
    values = Estimate(cell[had.column], cell[f"{had.column}_low"], cell[f"{had.column}_high"])
    by = had.by(cell, evaluation_counts)
    return (by, "ns", times(time_ns(values, had.unit), cell["batch"])) if had.of_items else (by, had.unit, values)


def _asked(db: Database, model: str, since: str) -> dict[str, _Asked]:
    found = {}
    for run, text in _of_runs(db, "plan", model, since):
        with suppress(msgspec.ValidationError):  # of a fairlap whose plans this one does not read
            found[run] = msgspec.json.decode(text, type=_Asked)
    return found


def machines_of_runs(db: Database, model: str, since: str) -> dict[str, dict[str, str]]:
    """Read the recorded facts of the machine, by run."""
    found = _of_runs(db, "machine", model, since)
    return {run: msgspec.json.decode(text, type=dict[str, str]) for run, text in found}


def _of_runs(db: Database, column: str, model: str, since: str) -> list[tuple[str, str]]:
    return db.execute(
        f"SELECT id, {column} FROM runs WHERE number IN (SELECT run FROM works WHERE model = ?) AND id >= ?",
        (model, time_in_ids(since) if since else ""),
    ).fetchall()


def stored_contestants(db: Database) -> list[str]:
    """By the names that they were given, and their frameworks."""
    found = db.execute("SELECT name FROM contestants UNION SELECT framework FROM contestants")
    return sorted(filter(None, (name for (name,) in found)))


def stored_models(db: Database) -> list[str]:
    return [model for (model,) in db.execute("SELECT DISTINCT model FROM works ORDER BY model")]
