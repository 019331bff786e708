"""Contestants in containers: which plans they can race in, and the paths of this machine that they see there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import Runner
from fairlap.launch.worker_process import WorkerProcess
from fairlap.meters.allocations import LIBRARY
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.processes.at_scale import runs_as_ranks
from fairlap.race.processes.sandbox import reached_by
from fairlap.request.names import CALLABLES, ContestantName
from fairlap.request.work import Work
from fairlap.worker.process_options import ALLOCATOR, CHECKOUT
from fairlap.worker.serving import over_http

_OPTIONS = (ALLOCATOR, CHECKOUT, over_http.OPTION)


def require_containable(plan: Plan) -> None:
    """Refuse what has not been made to work in a container, before anything runs."""
    for name in plan.contestants:
        if name.image and (why := _why_not(plan, name)):
            raise InvalidRequest(f"{name.text} cannot race in a container: {why}", code="E_CONTESTANT")


def _why_not(plan: Plan, name: ContestantName) -> str:
    if plan.device != "cpu":
        return "containers have no GPU"
    if any(map(runs_as_ranks, plan.works)):
        return "ranks are processes of this machine"
    if plan.min_memory or plan.max_batch:
        option = "--min-memory" if plan.min_memory else "--max-batch"
        return f"{option} limits processes of this machine"
    given = next((option for option in _OPTIONS if option in name.framework_options), "")
    return f"{given}= is for processes of this machine" if given else ""


def unequal_share(worker: WorkerProcess, plan: Plan) -> list[Notice]:
    """Warn of a container whose share of a busy machine is not that of contestants outside of containers."""
    if not worker.has_own_share or all(name.image for name in plan.contestants):
        return []
    text = "its container has a control group of its own, so on a busy machine it gets another share of the cores"
    return [Notice("W_OWN_SHARE", text)]


def with_paths(runners: Sequence[Runner], plan: Plan, materials_of: Callable[[Work, int], Materials]) -> list[Runner]:
    """Let containers see what their contestants read and write, at the same paths."""
    return [_with_paths(runner, plan, materials_of) for runner in runners]


def _with_paths(runner: Runner, plan: Plan, materials_of: Callable[[Work, int], Materials]) -> Runner:
    if runner.container is None:
        return runner
    readable: list[Path] = [LIBRARY] if plan.count_allocations else []
    writable: list[Path] = []
    for work in plan.works:
        for seed in dict.fromkeys(plan.data_seeds if work.source is not None else plan.data_seeds[:1]):
            materials = materials_of(work.in_precision(None), seed)
            reads, writes = reached_by(plan, materials, runner)
            readable += reads
            # Of a built-in model others follow, with other seeds, in folders beside this one.
            writable += writes if work.source is not None else [*writes, materials.folder.parent]
    seen = [each for each in dict.fromkeys(map(_absolute, (*readable, *writable))) if each.exists()]
    outer = [each for each in seen if each != Path("/") and not any(other in each.parents for other in seen)]
    written = {_absolute(each) for each in writable}
    container = replace(
        runner.container,
        readable=tuple(str(each) for each in outer if each not in written),
        writable=tuple(str(each) for each in outer if each in written),
        folder=os.getcwd() if runner.name.framework == CALLABLES else "/",  # noqa: PTH109
    )
    return replace(runner, container=container)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  (a link is seen at its own place)
