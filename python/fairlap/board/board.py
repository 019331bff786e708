"""What a board shows: of every work, machine and contestant the newest run, and the older ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from fairlap.board.submission_rules import SubmissionRules, broken_rules
from fairlap.errors import FairlapError
from fairlap.history.across.flips import Flip, flips_of
from fairlap.history.across.lines import Entry, entries_of
from fairlap.printed_document import PrintedDocument
from fairlap.render.bundle.contents import Bundle, bundle_of
from fairlap.render.judged import judged_text
from fairlap.request.work import Conditions
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.contract import Better, Unit
from fairlap.store.file_store import Store
from fairlap.store.stored_rows import RowsOfRun, rows_stored

_DIGITS = 16  # of the hash in the address of a history


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The newest figure of a contestant on a work and a machine."""

    work: str
    work_id: str
    model: str
    data: str
    conditions: Conditions
    machine: str
    machine_fingerprint: str
    contestant: str
    framework: str
    version: str | None
    outcome: str
    place: str | None  # among the contestants of its own run
    judged: Estimate | None
    judged_by: str
    judged_unit: Unit
    judged_better: Better
    text: str  # the figure as it is shown; where there is none, why
    run: str
    recorded_at: str
    bundle: str  # its evidence, from the board's folder on
    history: str  # the page of all runs of this work and machine


class Omitted(msgspec.Struct, frozen=True):
    """A run that is not on the board."""

    run: str
    why: str


class BoardDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.board/1"):
    cells: list[Cell]
    hashes: dict[str, str]  # SHA-256 of the manifest of each bundle, by its run
    omitted: list[Omitted]
    flips: list[Flip]  # pairs in another order on another work or machine


@dataclass(frozen=True)
class Board:
    document: BoardDocument
    older: Sequence[Cell]  # figures of older runs, the newest first; their bundles are not published
    bundles: dict[str, Bundle]  # by run


def board_of(store: Store, rules: SubmissionRules | None) -> Board:
    """Read all finished runs; those that break a rule, or lack the evidence, are omitted with the reason."""
    runs: list[RowsOfRun] = []
    omitted: list[Omitted] = []
    for summary in store.runs():
        if summary.state != "finished":
            omitted.append(Omitted(summary.run, f"it is {summary.state}"))
            continue
        found = rows_stored(store, summary.run)
        if not found.rows:
            omitted.append(Omitted(summary.run, "it has no rows"))
        elif rules is not None and (broken := broken_rules(rules, found)):
            omitted.append(Omitted(summary.run, "; ".join(broken)))
        else:
            runs.append(found)
    newest, older, bundles = _with_evidence(store, runs, omitted)
    hashes = {run: bundle.hash for run, bundle in bundles.items()}
    shown = [run for run in runs if run.run in bundles]
    flips = flips_of(entries_of(shown, {}, {}))
    return Board(BoardDocument(cells=newest, hashes=hashes, omitted=omitted, flips=flips), older, bundles)


def _with_evidence(
    store: Store, runs: Sequence[RowsOfRun], omitted: list[Omitted]
) -> tuple[list[Cell], list[Cell], dict[str, Bundle]]:
    """Choose the newest run of each place that has raw samples; without samples it cannot be checked."""
    newest: dict[tuple[str, ...], Cell] = {}
    older: list[Cell] = []
    bundles: dict[str, Bundle] = {}
    refused: set[str] = set()
    for cell in _cells(runs):
        if cell.run in refused:
            continue
        place = (cell.work_id, cell.data, cell.conditions, cell.machine_fingerprint, cell.contestant)
        if place in newest:
            older.append(cell)
            continue
        if cell.run not in bundles:
            try:
                bundles[cell.run] = bundle_of(
                    store.load(cell.run), cell.run, partial(store.samples, cell.run), with_page=False
                )
            except FairlapError as error:
                refused.add(cell.run)
                omitted.append(Omitted(cell.run, str(error)))
                continue
        newest[place] = cell
    older = [cell for cell in older if cell.run not in refused]
    return [*newest.values()], older, bundles


def _cells(runs: Sequence[RowsOfRun]) -> list[Cell]:
    """In the order of works; of each the newest run first."""
    entries = entries_of(runs, {}, {})
    works = {done: place for place, done in enumerate(dict.fromkeys(each.line.done for each in entries))}
    places = {run.run: place for place, run in enumerate(runs)}
    ordered = sorted(entries, key=lambda each: (works[each.line.done], places[each.line.run]))
    return [_cell(entry) for entry in ordered]


def _cell(entry: Entry) -> Cell:
    line, row = entry.line, entry.row
    address = "\0".join((line.work_id, line.data, line.conditions, line.machine_fingerprint))
    return Cell(
        work=line.work,
        work_id=line.work_id,
        model=row.workload,
        data=line.data,
        conditions=line.conditions,
        machine=line.machine,
        machine_fingerprint=line.machine_fingerprint,
        contestant=line.contestant,
        framework=row.framework,
        version=line.version,
        outcome=line.outcome,
        place=line.place,
        judged=line.judged,
        judged_by=line.judged_by,
        judged_unit=line.judged_unit,
        judged_better=line.judged_better,
        text=judged_text(row) or f"{line.outcome}: {line.message}".removesuffix(": "),
        run=line.run,
        recorded_at=line.recorded_at,
        bundle=f"bundles/{line.run}.fairlap",
        history=f"history/{hashlib.sha256(address.encode(errors='replace')).hexdigest()[:_DIGITS]}.html",
    )
