"""A run as one JSON file: its plan, every process, and what they show; and, exported from a store, its raw samples.

Whatever reads a run reads such a file. ``fairlap runs import`` stores it, under an id that follows from
its content when the file has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.atomic_files import write_atomically
from fairlap.machine.files.regular_file import content_of
from fairlap.race.around_blocks.compilation_result import still_to_inspect
from fairlap.race.resume import all_blocks_ran, search_is_over
from fairlap.race.run import RUN_FORMAT, Run, checked_run
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.gate_findings import GateFinding
from fairlap.results.judged_work import JudgedWork, judged_work
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.secrets import json_without_secrets
from fairlap.store.runs.run_ids import id_of, is_an_id
from fairlap.store.search import State
from fairlap.store.tables import BYTES_OF_A_SAMPLE, StoredProcess, stored_process
from fairlap.store.work_ids import with_ids


class SamplesOfProcess(msgspec.Struct):
    """One quantity of one process."""

    block: int
    contestant: str
    quantity: str
    ns: bytes  # little-endian float64; in the file as base64


class RunFile(Run):
    """A run with what its store knows of it, as it is read."""

    id: str = ""
    state: State | None = None  # absent in a file that a race wrote itself
    rows: list[Row] = msgspec.field(default_factory=list)
    samples: list[SamplesOfProcess] = msgspec.field(default_factory=list)
    decision: Decision | msgspec.UnsetType = msgspec.UNSET  # where requirements or a use were given


class RunDocument(RunFile, tag_field="schema", tag=f"fairlap.run/{RUN_FORMAT}"):
    """As it is written: with the comparisons, which are for other programs; fairlap computes its own."""

    work_results: list[JudgedWork] = msgspec.field(default_factory=list)
    findings: list[GateFinding] | msgspec.UnsetType = msgspec.UNSET  # where changes of other quantities are bounded


class _OlderRunFile(RunFile):
    rows: list[dict[str, Any]] = msgspec.field(default_factory=list)  # type: ignore[assignment]


def run_document(
    run: Run,
    results: Results | None = None,
    *,
    run_id: str = "",
    state: State | None = None,
    rows: list[Row] | None = None,
) -> RunDocument:
    """While a race runs there are no results yet; the processes that have ended are written all the same.

    ``rows`` are those of the store, which know the price and the baseline that the race was given.
    """
    fields = {name: getattr(run, name) for name in Run.__struct_fields__}
    if results is None:
        return RunDocument(**fields, id=run_id, state=state)
    shown = [judged_work(each, results.order_differs(each.work)) for each in results.work_results]
    run_id = results.run_id if is_an_id(results.run_id) else ""
    document = RunDocument(
        **fields, id=run_id, state=state, rows=list(results.rows) if rows is None else rows, work_results=shown
    )
    if results.findings:
        document.findings = [each.printed for each in results.findings]
    if results.decision is not None:
        document.decision = results.decision
    return document


def encode_document(document: RunDocument) -> bytes:
    return msgspec.json.format(json_without_secrets(msgspec.json.encode(document)), indent=1)


def save_run(path: Path, run: Run, results: Results | None = None, run_id: str = "") -> None:
    """Replace the file only when the new one is whole: a full disk or a kill leaves the last whole file."""
    write_atomically(path, encode_document(run_document(run, results, run_id=run_id)))


def load_run(path: Path) -> Run:
    """Read the run alone; errors name the place in the file."""
    return _decode(path, Run)[0]


def load_run_file(path: Path) -> RunFile:
    """Read everything; a file without an id gets one from its content.

    Such a file leaves out its rows, which name no run; so does one whose rows an older fairlap wrote with other
    columns: they are computed from its processes.
    """
    try:
        run, content = _decode(path, RunFile)
    except InvalidRequest:
        older, content = _decode(path, _OlderRunFile)
        if not older.rows or any(set(Row.__struct_fields__) <= row.keys() for row in older.rows):
            raise
        rows: list[Row] = []
        run = RunFile(**{**{name: getattr(older, name) for name in RunFile.__struct_fields__}, "rows": rows})
    if not run.id:
        run.id, run.rows = id_of(run.began_at, content=content), []
    if not is_an_id(run.id) or any(row.run != run.id for row in run.rows):
        raise InvalidRequest(
            f"{path} is not a run file: its id {run.id!r} is invalid or not that of its rows", code="E_RUN_FILE"
        )
    return run


_handed_over: dict[Path, bytes] = {}


def hand_over(path: Path, document: bytes) -> None:
    """Give the run document of a file of another format, such as a bundle that was checked, to all that read it."""
    _handed_over[path] = document


_AnyRun = TypeVar("_AnyRun", bound=Run)


class _AnyDocument(msgspec.Struct):
    schema: str = ""


_READ_BY = {
    "fairlap.suite": "the result of a suite; `fairlap suite show {}` shows it",
    "fairlap.plan": "a plan; `fairlap compare --plan {}` runs it",
    "fairlap.comparison": "a comparison of callables in one process, which holds no run; "
    "`fairlap compare callable --on python:call=MODULE.NAME,... -o FILE` writes one",
    "fairlap.choice": "an answer of `fairlap choose`, which holds no run; add -o FILE.html there for a page of it",
}


def _what_it_is(path: Path, content: bytes) -> str:
    """Name the document of another command, with the one that reads it; empty where it is none of ours."""
    try:
        schema = msgspec.json.decode(content, type=_AnyDocument).schema.partition("/")[0]
    except NOT_THE_DOCUMENT:
        return ""
    if schema in ("", "fairlap.run") or not schema.startswith("fairlap."):
        return ""
    return _READ_BY.get(schema, f"a document {schema}, which holds no run").format(path)


def _decode(path: Path, kind: type[_AnyRun]) -> tuple[_AnyRun, bytes]:
    try:
        content = _handed_over.get(path) or content_of(path)
    except OSError as error:
        raise InvalidRequest(f"cannot read the run file {path}: {error.strerror}", code="E_RUN_FILE") from None
    try:
        content = with_ids(content)
        run = msgspec.json.decode(content, type=kind)
        checked_run(run)
    except NOT_THE_DOCUMENT as error:
        why = _what_it_is(path, content)
        raise InvalidRequest(f"{path} is {why or f'not a run file: {error}'}", code="E_RUN_FILE") from None
    if run.format != RUN_FORMAT:
        raise InvalidRequest(
            f"{path} has run format {run.format}; this version of fairlap reads {RUN_FORMAT}", code="E_RUN_FILE"
        )
    return run, content


def state_of(run: RunFile) -> State:
    """Where the file has no state: a race that ended early by itself gives the reason."""
    if run.state is not None:
        return run.state
    over = (
        (run.ended_early or all_blocks_ran(run.plan, run.processes))
        and search_is_over(run.plan, run.processes)
        and not still_to_inspect(run.plan, run.processes, run.compilations)
    )
    return "finished" if over else "interrupted"


def encode_export(
    results: Results, state: State, rows: list[Row], samples: Iterable[tuple[int, str, str, bytes]]
) -> bytes:
    document = run_document(results.run, results, state=state, rows=rows)
    document.samples = [SamplesOfProcess(*each) for each in samples]
    return msgspec.json.encode(document)


def processes_with_samples(run: RunFile, file: Path) -> list[StoredProcess]:
    processes = {(process.block, process.contestant): stored_process(process) for process in run.processes}
    if len(processes) < len(run.processes):
        raise InvalidRequest(f"{file} is not a run file: it holds a process twice", code="E_RUN_FILE")
    for each in run.samples:
        process = processes.get((each.block, each.contestant))
        if process is None or each.quantity in process.samples or len(each.ns) % BYTES_OF_A_SAMPLE:
            whose = f"{each.contestant} in block {each.block}"
            raise InvalidRequest(
                f"{file} is not a run file: the samples of {whose} do not fit its processes", code="E_RUN_FILE"
            )
        process.samples[each.quantity] = each.ns
    return list(processes.values())
