"""Resuming an interrupted run: the whole blocks that are kept, and whether the data is still the same."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fairlap.data.datasets import DATA_HASH
from fairlap.launch.packages.origins import with_wheel_here
from fairlap.machine.differences import FactDifference
from fairlap.models.sources.contract import SourceError
from fairlap.race.equal_work.fed_check import data_for
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.left_out import contestants_of
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_modules import modules_of, with_modules_then
from fairlap.race.run import Run
from fairlap.race.scenario_side import race_sides
from fairlap.race.stopping import ended_by_rule
from fairlap.request.fields.data.table_column import file_and_column
from fairlap.request.fields.source import Source, path_parts, with_paths
from fairlap.request.work import StartWeights
from fairlap.scenarios.process_result import ProcessResult, values_in_force


def whole_blocks(plan: Plan, processes: Sequence[ProcessResult]) -> list[ProcessResult]:
    """Keep whole blocks; one that was broken off is run again, since all its contestants take turns at one time."""
    ran: dict[int, set[str]] = defaultdict(set)
    for process in processes:
        ran[process.block].add(process.contestant)
    whole = {
        block.number
        for block in plan.blocks
        if block.number in ran and set(contestants_of(plan, block, processes)) <= ran[block.number]
    }
    return [process for process in processes if process.block in whole]


def all_blocks_ran(plan: Plan, processes: Sequence[ProcessResult]) -> bool:
    return {process.block for process in whole_blocks(plan, processes)} == {block.number for block in plan.blocks}


def why_over(run: Run) -> str:
    """Why a run that has ended needs no further block, or may have none; empty where something is missing in it."""
    if not search_is_over(run.plan, run.processes):
        return ""
    if all_blocks_ran(run.plan, run.processes):
        return "it has run all its blocks"
    return ended_by_rule(run.ended_early)


def search_is_over(plan: Plan, processes: Sequence[ProcessResult]) -> bool:
    """For the smallest memory and the largest batch of everyone who finished, where they were asked for."""
    finished = {
        (process.contestant, process.work_id)
        for process in processes
        if process.finished and process.conditions == plan.headline
    }
    asked = [
        name for name, wanted in (("smallest_memory", plan.min_memory), ("largest_batch", plan.max_batch)) if wanted
    ]
    return all(
        finished <= {(process.contestant, process.work_id) for process in processes if getattr(process, name)}
        for name in asked
    )


def with_files_here(plan: Plan) -> Plan:
    """Take recorded files that are not at their place from the current folder, by name and SHA-256.

    ``require_same_sources`` refuses those that are in neither place, after the plan is trusted. Modules are imported
    from where they were; one that is neither there nor here is refused at once.
    """
    works = tuple(
        msgspec.structs.replace(
            work,
            source=None if work.source is None else _source_here(work.source),
            start=None if work.start is None else _start_here(work.start),
        )
        for work in plan.works
    )
    contestants = tuple(map(with_wheel_here, plan.contestants))
    contestants, works, modules = with_modules_then(contestants, works, plan.modules)
    return msgspec.structs.replace(plan, contestants=contestants, works=works, modules=modules)


def with_modules_now(plan: Plan) -> Plan:
    """Record the code that is raced now."""
    return msgspec.structs.replace(plan, modules=modules_of(plan.contestants, plan.works)) if plan.modules else plan


def _source_here(source: Source) -> Source:
    roots = _roots(source)
    moved = {
        path: str(_place_here(path, roots))
        for path, digest in source.files
        if not Path(path).exists() and _hash_of(_place_here(path, roots)) == digest
    }
    if not moved:
        return source
    folders = [root for root in roots if any(path.startswith(f"{root}/") for path in moved)]
    moved |= {root: str(Path.cwd() / Path(root).name) for root in folders}
    if not Path(source.folder).is_dir():
        moved[source.folder] = str(Path.cwd())
    return with_paths(source, lambda path: moved.get(path, path))


def _start_here(start: StartWeights) -> StartWeights:
    here = _place_here(start.path, [])
    if Path(start.path).exists() or _hash_of(here) != start.sha256:
        return start
    return msgspec.structs.replace(start, path=str(here))


def _roots(source: Source) -> list[str]:
    first = path_parts(source.path)[1]
    tables = (file_and_column(each)[0] for each in (source.labels, source.groups))
    return [path for path in (first, *source.exports, source.inputs, *tables) if path]


def _place_here(path: str, roots: Sequence[str]) -> Path:
    """Name a file's place in the current folder: in a folder of that name where a whole folder was recorded."""
    root = next((root for root in roots if path.startswith(f"{root}/")), "")
    return Path.cwd() / (f"{Path(root).name}{path.removeprefix(root)}" if root else Path(path).name)


def _hash_of(file: Path) -> str:
    """Hash a regular file; empty where there is none that can be read."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""


def _require_files(source: Source) -> None:
    """Raise SourceError for a recorded file that is not at its place, with what to do about it."""
    for path, digest in source.files:
        if Path(path).exists():
            continue
        here = _place_here(path, _roots(source))
        if now := _hash_of(here):
            raise SourceError(
                f"{path} is not here, and {here} is another file: its SHA-256 is {now}, not {digest}",
                code="E_SOURCE_CHANGED",
            )
        raise SourceError(
            f"{path} is not here, nor {here}; put the file with SHA-256 {digest} there", code="E_MODEL_FILE"
        )


def require_same_sources(
    plan: Plan,
    notify: Callable[[str], None] = lambda _: None,
    passed: tuple[str, ...] = (),
    *,
    budget_s: float | None = None,
) -> None:
    """Require the sources that the plan was made from.

    These are users' models, inputs and labels, the data that works learn and the weights that they start from. Raises
    SourceError or InvalidRequest.
    """
    for work in plan.works:
        if work.source is not None:
            _require_files(work.source)
        for side in race_sides():
            side.require_unchanged(work)
        if work.source is not None or work.start is not None:
            materials_for(work, plan.data_seed, notify, passed, budget_s=budget_s)


def changed_data(
    plan: Plan, processes: Sequence[ProcessResult], notify: Callable[[str], None] = lambda _: None
) -> list[FactDifference]:
    """Compare the data's hash with the one that every process that was fed kept: a saved run does not hold data.

    Raises what a race would when there are no such data here. Drawn data can differ too: with what draws them.
    """
    found = []
    for work in plan.works if plan.data else ():
        work_id = work.id
        then = values_in_force((process for process in processes if process.work_id == work_id), DATA_HASH)
        if not then:
            continue
        now = data_for(plan, materials_for(work, plan.data_seed, notify)).hash
        if then != [now]:
            found.append(FactDifference(f"data {plan.data}", " and ".join(then), now))
    return list(dict.fromkeys(found))
