"""Processes of each contestant on each work: their answers compared with the reference and with each other.

Each trial is a fresh worker. The first has one thread; others repeat it, have two threads, or get the first item alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from fairlap.errors import FairlapError
from fairlap.launch.runners import Runner, runners_for
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.files.scratch_folder import ScratchFolder, remove_abandoned
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.safetensors import BadFile
from fairlap.models.arrays import Arrays
from fairlap.models.checks.kept_digits import digits
from fairlap.models.spec import BATCH, UNIT_ROUNDOFF
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.material_sources import materials_for, without_route
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.block_worker import block_worker, request_for
from fairlap.race.processes.contained import with_paths
from fairlap.scenarios.digits.race.digits_run import digits_possible
from fairlap.scenarios.digits.scenario import is_of_digits
from fairlap.stability.table import Repeated, StabilityRow, compared
from fairlap.worker.protocol import Prepare

_SECONDS, _WARM_UP_CALLS = 0.2, 3
_WHEN = "before"
_FEWEST_OF_A_BATCH = 2


@dataclass(frozen=True)
class _Trial:
    """One process: with how many threads, and of which batch."""

    plan: Plan
    block: Block
    materials: Materials
    runner: Runner
    scratch: Path
    threads: int = 1
    batch: int | None = None

    @property
    def request(self) -> Prepare:
        request = request_for(self.plan, self.materials, self.runner)
        return msgspec.structs.replace(
            request, threads=self.threads, batch=self.batch or request.batch, scale=None, unseen=()
        )

    @property
    def own_runner(self) -> Runner:
        return replace(self.runner, environment=self.runner.environment_with(threads=self.threads))


def stability_rows(plan: Plan, report: Callable[[str], None]) -> tuple[StabilityRow, ...]:
    """Take contestants and works of a plan, whose blocks and measuring do not count."""
    with ExitStack() as stack:
        remove_abandoned()
        stack.callback(remove_abandoned)  # of workers that were killed
        scratch = stack.enter_context(ScratchFolder())
        works = [materials_for(work.in_precision(None), plan.data_seed, report, plan.pass_env) for work in plan.works]
        runners = runners_for(
            plan.contestants,
            plan.threads,
            plan.device,
            scratch / "caches",
            stack,
            report,
            without_route(plan.contestants, works),
            plan.precisions,
            plan.pass_env,
        )
        runners = with_paths(runners, plan, lambda work, seed: materials_for(work, seed, report, plan.pass_env))
        return tuple(_row(plan, materials, runner, scratch, report) for materials in works for runner in runners)


def _row(
    plan: Plan, materials: Materials, runner: Runner, scratch: Path, report: Callable[[str], None]
) -> StabilityRow:
    work, name = materials.work, runner.name.text
    report(f"{work.label}: {name}")
    row = StabilityRow(contestant=name, work=work.label, model=work.model, precision=work.precision, batch=work.batch)
    if runner.missing is not None:
        return msgspec.structs.replace(row, absent=str(runner.missing), code=runner.missing.code)
    trial = _Trial(plan, plan.blocks[0], materials, runner, scratch)
    try:
        row, first = _first(trial, row)
    except (FairlapError, BadFile) as error:
        return msgspec.structs.replace(row, absent=str(error), code=getattr(error, "code", "E_OUTPUT"))
    return msgspec.structs.replace(
        row,
        process=_repeated(trial, first),
        threads=_repeated(replace(trial, threads=plan.threads), first)
        if plan.threads > 1
        else Repeated(why="one core is available"),
        batched=_alone(trial, first),
    )


def _first(trial: _Trial, row: StabilityRow) -> tuple[StabilityRow, Arrays]:
    """Answer, answer other inputs, answer again, and time a call."""
    materials, limits = trial.materials, trial.plan.limits
    with _worker(trial) as worker:
        prepared = worker.prepare(trial.request, within_s=limits.prepare_s)
        answers.require_settings(prepared.in_force, trial.threads, materials.work.precision, materials.own_types)
        answers.require_weights(materials, prepared.weights_hash)
        first = _answer(worker, trial, "inputs")
        errors = answers.array_errors(materials, first, "inputs", _WHEN)
        answers.require_right(errors, prepared.in_force, materials.own_types)
        _answer(worker, trial, "changed")
        again = compared(first, _answer(worker, trial, "inputs"))
        measured, samples = worker.measure(seconds=_SECONDS, warmup=_WARM_UP_CALLS, within_s=limits.measure_s)
        worker.quit()
    worst, roundoff = max(error.distance for error in errors), UNIT_ROUNDOFF.get(materials.work.precision)
    found = digits_possible(materials) if is_of_digits(materials.work.model) else None
    return (
        msgspec.structs.replace(
            row,
            version=prepared.version,
            relative_error=worst if np.isfinite(worst) else None,
            digits_kept=None if roundoff is None else digits(worst, roundoff),
            digits_possible=None if found is None else digits(found.smallest_error, found.roundoff),
            time_ns=float(np.nanmedian(samples[measured.quantities[0].name])),
            again=again,
        ),
        first,
    )


def _repeated(trial: _Trial, first: Arrays) -> Repeated:
    try:
        return compared(first, _answer_of(trial))
    except (FairlapError, BadFile) as error:
        return Repeated(why=str(error))


def _alone(trial: _Trial, first: Arrays) -> Repeated:
    """Answer the first item of the batch alone: what is handed out at a smaller batch are the first items."""
    spec, work = trial.materials.spec, trial.materials.work
    shapes = {tensor.name: tensor.shape for tensor in spec.outputs}
    if work.source is not None:
        return Repeated(why="a model of your own is opened at fixed sizes")
    if not all(BATCH in tensor.shape for tensor in (*spec.inputs, *spec.outputs)):
        return Repeated(why="all its sizes are in its name")
    if work.batch < _FEWEST_OF_A_BATCH:
        return Repeated(why="the batch has one item")
    items = {name: array.take([0], axis=shapes[name].index(BATCH)) for name, array in first.items()}
    return _repeated(replace(trial, batch=1), items)


def _answer_of(trial: _Trial) -> Arrays:
    with _worker(trial) as worker:
        prepared = worker.prepare(trial.request, within_s=trial.plan.limits.prepare_s)
        work, own_types = trial.materials.work, trial.materials.own_types
        answers.require_settings(prepared.in_force, trial.threads, work.precision, own_types)
        answer = _answer(worker, trial, "inputs")
        worker.quit()
    return answer


def _worker(trial: _Trial) -> WorkerProcess:
    return block_worker(trial.block, trial.own_runner, trial.plan.limits)


def _answer(worker: WorkerProcess, trial: _Trial, which: str) -> Arrays:
    file = trial.scratch / "answer.safetensors"
    file.unlink(missing_ok=True)
    worker.answer("changed" if which == "changed" else "inputs", file, within_s=trial.plan.limits.answer_s)
    return dict(safetensors.read(file))


def failures(rows: Sequence[StabilityRow]) -> list[StabilityRow]:
    """Those that should have answered: what a framework lacks is no failure."""
    return [row for row in rows if row.absent and row.code not in ("E_UNSUPPORTED", "E_NOT_INSTALLED")]
