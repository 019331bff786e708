"""A race as one JSON file: the plan that was run, every process, and what they show.

A run as one JSON file with everything in it, samples too, to be taken into another store under the same id.

It is a saved run with more in it: what reads the file of ``fairlap compare --json`` reads this one as well. That
file can be taken in, too; it has no samples, and its id follows from its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.machine.atomic_files import write_for_user, write_whole
from fairlap.race.plan import Plan
from fairlap.race.resume import all_blocks_ran, search_is_over
from fairlap.race.run import RUN_FORMAT, Run
from fairlap.results.other_quantities import OtherFigure, other_figures
from fairlap.results.results import ContestantResult, Results, WorkResult
from fairlap.results.row import Row
from fairlap.store.run_ids import id_of, is_an_id
from fairlap.store.search import State
from fairlap.store.tables import BYTES_OF_A_SAMPLE, StoredProcess, stored_process


def save_run(path: Path, run: Run, results: Results | None = None) -> None:
    """Written beside and renamed, so that a full disk or a killed process leaves the last whole file.

    While a race runs there are no results yet; what has ended is saved all the same.
    """
    document = msgspec.structs.asdict(run) | (_shown(run.plan, results) if results is not None else {})
    text = msgspec.json.format(msgspec.json.encode(document), indent=1)
    write_whole(path, text)


def load_run(path: Path) -> Run:
    """Read a saved run; whatever is wrong with it is said by its place in the file."""
    try:
        run = msgspec.json.decode(path.read_bytes(), type=Run)
    except OSError as error:
        raise InvalidRequest(f"the run {path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} is not a saved run: {error}") from None
    if run.format != RUN_FORMAT:
        raise InvalidRequest(f"{path} has format {run.format}; this fairlap reads {RUN_FORMAT}")
    return run


def _shown(plan: Plan, results: Results) -> dict[str, Any]:
    return {
        "work_results": [_work_result(plan, work_result) for work_result in results.work_results],
        "order_differs": {work.label: results.order_differs(work.label) for work in plan.works},
    }


def _work_result(plan: Plan, work_result: WorkResult) -> dict[str, Any]:
    return {
        "work": work_result.work,
        "conditions": work_result.conditions,
        "rows": [_row(row) for row in work_result.rows],
        "blocks": {
            "kept": work_result.blocks.kept,
            "dropped": work_result.blocks.dropped,
            "told": work_result.blocks.told or None,
        },
        "comparisons": [_comparison(each) for each in work_result.comparisons],
        "expected_beside": None if work_result.table is None else _expected_beside(work_result.table),
        "other_figures": [
            {
                "metric": other.metric.name,
                "comparisons": [_comparison(each) for each in other.comparisons],
                "without": other.without,
            }
            for other in _other_figures(plan, work_result)
        ],
        "why_no_verdict": work_result.why_no_verdict or None,
    }


def _other_figures(plan: Plan, work_result: WorkResult) -> tuple[OtherFigure, ...]:
    work = next(work for work in plan.works if work.label == work_result.work)
    return other_figures(work, work_result.compared) if work_result.table is not None else ()


def _comparison(each: verdict.Comparison) -> dict[str, Any]:
    return {
        "a": each.a,
        "b": each.b,
        "verdict": each.verdict.value,
        "ratio": each.ratio,
        "interval": [each.interval.low, each.interval.high],
        "blocks": each.blocks,
        "p_adjusted": each.p_adjusted,
        "detectable_effect": each.detectable_effect,
        "sentence": verdict.sentence(each),
        "doubts": [str(doubt) for doubt in each.doubts],
    }


def _expected_beside(table: verdict.BlockTable) -> dict[str, Any]:
    """What many readers look for. Never the verdict."""
    return {"means": verdict.means_and_spreads(table), "welch": verdict.welch(table)}


def _row(row: ContestantResult) -> dict[str, Any]:
    modes = row.figure.modes.modes if row.figure is not None else ()
    return {
        "contestant": row.contestant,
        "ranked": row.ranked,
        "trouble": row.trouble or None,
        "median_ns": row.median_ns if row.finished else None,
        "interval_ns": None if row.figure is None or row.figure.value is None else [row.figure.low, row.figure.high],
        "modes": [{"ns": mode.value, "share": mode.share} for mode in modes] if len(modes) > 1 else [],
        "causes": [{"of": cause.covariate, "typical": cause.typical, "remedy": cause.remedy} for cause in row.causes],
        "worst_relative_error": row.worst_relative_error,
    }


class CarriedSamples(msgspec.Struct):
    """Of one quantity of one process."""

    block: int
    contestant: str
    quantity: str
    ns: bytes  # little-endian float64; in the file as base64


class CarriedRun(Run):
    id: str = ""
    state: State | None = None  # a file of ``fairlap compare --json`` does not say
    rows: list[Row] = msgspec.field(default_factory=list)
    samples: list[CarriedSamples] = msgspec.field(default_factory=list)


def carried(
    run_id: str, state: State, run: Run, rows: list[Row], samples: Iterable[tuple[int, str, str, bytes]]
) -> CarriedRun:
    fields = {name: getattr(run, name) for name in Run.__struct_fields__}
    return CarriedRun(**fields, id=run_id, state=state, rows=rows, samples=[CarriedSamples(*each) for each in samples])


def write_carried(file: Path, run: CarriedRun) -> None:
    """Under its own name only when it is whole."""
    write_for_user(file, msgspec.json.encode(run))


def read_carried(file: Path) -> CarriedRun:
    try:
        text = file.read_bytes()
        run = msgspec.json.decode(text, type=CarriedRun)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file} is not a run: {error}") from None
    if run.format != RUN_FORMAT:
        raise InvalidRequest(f"{file} has format {run.format}; this fairlap reads {RUN_FORMAT}")
    if not run.id:
        run.id = id_of(run.began_at, content=text)
    if not is_an_id(run.id):
        raise InvalidRequest(f"{file} is not a run: {run.id!r} is no id of a run")
    if any(row.run != run.id for row in run.rows):
        raise InvalidRequest(f"{file} is not a run: it has rows of another one")
    return run


def state_of(run: CarriedRun) -> State:
    """What was not said follows from the processes: a race that ends by itself before its last block says why."""
    if run.state is not None:
        return run.state
    over = (run.ended_early or all_blocks_ran(run.plan, run.processes)) and search_is_over(run.plan, run.processes)
    return "finished" if over else "interrupted"


def processes_with_samples(run: CarriedRun, file: Path) -> list[StoredProcess]:
    processes = {(process.block, process.contestant): stored_process(process) for process in run.processes}
    if len(processes) < len(run.processes):
        raise InvalidRequest(f"{file} is not a run: it holds a process twice")
    for each in run.samples:
        process = processes.get((each.block, each.contestant))
        if process is None or each.quantity in process.samples or len(each.ns) % BYTES_OF_A_SAMPLE:
            whose = f"{each.contestant} in block {each.block}"
            raise InvalidRequest(f"{file} is not a run: the samples of {whose} do not fit its processes")
        process.samples[each.quantity] = each.ns
    return list(processes.values())
