"""What became of a sweep: a document for programs, and text."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlap import quantity_text
from fairlap.printable import joined_lines
from fairlap.printed_document import PrintedDocument
from fairlap.race.planning.plan import Plan
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.file_store import Store
from fairlap.store.sweeps import Spread, Sweep
from fairlap.sweep.driver import Driver, Open


class RunDocument(msgspec.Struct, frozen=True):
    """``rows`` are there when all blocks are."""

    run: str
    request: str
    machine: str  # the processor
    cores: tuple[int, ...]
    hosts: dict[str, int]  # how many blocks each ran
    blocks: int
    stored: int
    losses: int  # of nodes while they ran one of these blocks, which was then run again
    why_incomplete: str
    rows: list[Row]


class SweepPlans(PrintedDocument, frozen=True, tag="fairlap.plans/1"):
    plans: dict[str, Plan]  # by the name of the request file


class SweepDocument(PrintedDocument, frozen=True, tag="fairlap.sweep/1"):
    sweep: str
    machines: Spread
    state: Literal["finished", "interrupted"]
    left_out: dict[str, str]  # nodes, and why
    runs: list[RunDocument]


def document_of(sweep: Sweep, left_out: dict[str, str], driver: Driver, store: Store) -> SweepDocument:
    runs = [_run_document(each, store) for each in driver.runs]
    whole = all(each.stored == each.blocks for each in runs)
    return SweepDocument(sweep.id, sweep.machines, "finished" if whole else "interrupted", left_out, runs)


def _run_document(each: Open, store: Store) -> RunDocument:
    run = each.run
    ran = list(run.hosts.values())
    return RunDocument(
        run=run.run,
        request=run.request,
        machine=run.facts.get("cpu model", "an unknown processor"),
        cores=run.plan.available_cores,
        hosts={host: ran.count(host) for host in sorted(set(ran))},
        blocks=len(run.plan.blocks),
        stored=len(ran),
        losses=each.losses.total(),
        why_incomplete=each.why_incomplete,
        rows=[] if run.missing else store.rows(run.run),
    )


def text_of_sweep(document: SweepDocument, store: Store) -> str:
    """Write a line for each run, then the answers of those that are whole."""
    whole = [run.run for run in document.runs if run.stored == run.blocks]
    parts = [joined_lines([f"sweep {document.sweep}: {document.state}", *map(_line_of, document.runs)])]
    parts += [f"{run}\n{text_of(results_of(store.load(run), run))}" for run in whole]
    if len(whole) > 1:
        parts.append(f"Side by side: fairlap across {' '.join(whole)}")
    return "\n\n".join(parts)


def incomplete(driver: Driver) -> str:
    """One line for the error, with the first reason."""
    missing = quantity_text.count(driver.blocks - driver.done, "block")
    why = next(each.why_incomplete for each in driver.runs if each.run.missing)
    return f"{missing} of the sweep could not be run: {why}"


def _line_of(run: RunDocument) -> str:
    where = f"{run.machine} ({quantity_text.count(len(run.cores), 'core')})"
    hosts = ", ".join(f"{host} {count}" for host, count in run.hosts.items())
    stored = f"{run.stored} of {quantity_text.count(run.blocks, 'block')}"
    why = f"; {run.why_incomplete}" if run.why_incomplete else ""
    return f"  {run.run}  {run.request} on {where}: {stored}{f' ({hosts})' if hosts else ''}{why}"
