"""The largest batch that a contestant can run in the memory it may use.

Each try is a fresh worker, from its start to a checked answer and a few timed calls.

The batch is doubled until it no longer fits, then the largest one that fits is found by halving, in whole multiples of
the batch that was raced. A try has the race's items again and again, so that the race's reference is also its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from fairlap.errors import FairlapError
from fairlap.launch.memory_groups import GroupsHere, groups_here, limited_group, started_in
from fairlap.launch.resident_limit import ResidentLimit
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.safetensors import BadFile
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH
from fairlap.race.around_blocks.smallest_memory import Trial
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.processes.block_worker import block_worker
from fairlap.request.work import CALIBRATED
from fairlap.scenarios.process_result import BatchOutcome, BatchTry, LargestBatch

RESOLUTION_SHARE = 1 / 16
_SHARE_OF_AVAILABLE = 0.8
_LEAST_SHARE_LEFT = 0.1  # of what was available at first
_SAMPLES, _WARM_UP_CALLS = 3, 1
_SHORTEST_TRY_S = 1.0
_MOST_COPIES_CHECKED = 16  # of the race's items, in an answer that has more
_DEVICE_LAYERS = ("allocator_reserved_peak", "allocator_live_peak", "driver")


def search(try_batch: Callable[[int], BatchTry], first: int, most: int, resolution_share: float) -> LargestBatch:
    """``first`` is tried first, and only its multiples; none is larger than ``most``."""
    tries: list[BatchTry] = []

    def fits(multiple: int) -> bool:
        tries.append(try_batch(multiple * first))
        return tries[-1].outcome == "fits"

    low, high, last = 0, 1, most // first
    while fits(high):
        low = high
        if low == last:
            return LargestBatch(low * first, ended_by="limit", tries=tuple(tries))
        high = min(2 * high, last)
    failed = tries[-1]
    while failed.outcome != "budget" and high - low > max(1, int(resolution_share * low)) and low:
        middle = low + (high - low) // 2
        if fits(middle):
            low = middle
        else:
            high, failed = middle, tries[-1]
    found = low * first if low else None
    ended_by = "" if failed.outcome == "fits" else failed.outcome
    return LargestBatch(found, (high - low) * first, ended_by, tries=tuple(tries), why=failed.why)


def largest_batch(trial: Trial, groups: GroupsHere | None = None) -> LargestBatch:
    elsewhere = next((process.elsewhere for process in trial.processes if process.finished), "")
    if why := elsewhere or _why_not(trial.materials):
        return LargestBatch(None, why=why)
    available = available_memory_bytes()
    if available is None:
        return LargestBatch(None, why="this system does not report its available memory")
    rules = _Rules(
        round(_SHARE_OF_AVAILABLE * available),
        round(_LEAST_SHARE_LEFT * available),
        (groups or groups_here()).folder,
        time.monotonic() + trial.plan.max_batch_budget_s,
    )
    first = trial.materials.work.batch
    found = search(lambda batch: _tried(trial, batch, rules), first, trial.plan.max_batch, RESOLUTION_SHARE)
    on_cpu = trial.plan.device == "cpu"
    return msgspec.structs.replace(
        found,
        memory="resident" if on_cpu else "of the device",
        limit_bytes=rules.limit_bytes if on_cpu else None,
        checked=mode_side(trial.materials.work.mode).checked_at_batch,
    )


@dataclass(frozen=True)
class _Rules:
    limit_bytes: int  # of resident memory
    least_available_bytes: int
    group: Path | None  # in which control groups can be made
    ends_at_s: float

    @property
    def seconds_left(self) -> float:
        return self.ends_at_s - time.monotonic()


def _why_not(materials: Materials) -> str:
    if materials.work.source is not None:
        return "a model of your own is opened at fixed sizes; race it at several with --batch"
    if materials.work.precision in CALIBRATED:
        return "its calibration is done at the batch that is raced"
    has_items = any(BATCH in tensor.shape for tensor in materials.spec.inputs)
    if (
        not materials.spec.computes
        or not has_items
        or not all(BATCH in tensor.shape for tensor in materials.spec.outputs)
    ):
        return "the model does not take a batch of items"
    return ""


def _tried(trial: Trial, batch: int, rules: _Rules) -> BatchTry:
    """Whatever becomes of a try that is short of memory, it does not fit."""
    if rules.seconds_left < _SHORTEST_TRY_S:
        return BatchTry(batch, "budget", why=_budget_spent(trial))
    with ExitStack() as stack:
        try:
            return _ran(trial, batch, rules, stack)
        except WorkerLost as found:
            lost = under_a_limit(found, trial.plan.limits.memory_bytes)
            if lost.outcome == "timeout" and rules.seconds_left < _SHORTEST_TRY_S:
                return BatchTry(batch, "budget", why=_budget_spent(trial))
            outcome: BatchOutcome = "out_of_memory" if lost.outcome == "out_of_memory" else "refused"
            return BatchTry(batch, outcome, why=lost.message)
        except _TooLarge as error:
            return BatchTry(batch, "out_of_memory", why=str(error))
        except (FairlapError, answers.OtherWork, BadFile) as error:
            return BatchTry(batch, "refused", why=str(error))
        except OSError as error:
            return BatchTry(batch, "refused", why=f"the try could not be made: {error.strerror}")


class _TooLarge(Exception):
    """The worker was ended at its limit."""


def _budget_spent(trial: Trial) -> str:
    return f"the {trial.plan.max_batch_budget_s:g} s of its search were spent"


def _ran(trial: Trial, batch: int, rules: _Rules, stack: ExitStack) -> BatchTry:
    answer = trial.scratch / "at-a-batch.safetensors"
    answer.unlink(missing_ok=True)
    runner = trial.runner
    if rules.group is not None:
        group = stack.enter_context(limited_group(rules.group, rules.limit_bytes))
        runner = replace(runner, command=started_in(group, runner.command))
    within_s = max(rules.seconds_left, _SHORTEST_TRY_S)
    limits = msgspec.structs.replace(trial.plan.limits, start_s=within_s)
    worker = stack.enter_context(block_worker(trial.block, runner, limits))
    watched = stack.enter_context(ResidentLimit(worker.pid, rules.limit_bytes, rules.least_available_bytes))
    try:
        request = msgspec.structs.replace(trial.request, batch=batch, unseen=())
        prepared = worker.prepare(request, within_s=within_s)
        worker.answer("inputs", answer, within_s=_left(rules))
        _require_right(trial.materials, safetensors.read(answer), batch, prepared.in_force)
        answer.unlink(missing_ok=True)
        measured, samples = worker.measure(
            samples=_SAMPLES, warmup=_WARM_UP_CALLS, calls_per_sample=1, within_s=_left(rules)
        )
        held = worker.quit().memory.bytes
    except WorkerLost as lost:
        if watched.exceeded:
            raise _TooLarge(f"{watched.exceeded} (in {lost.phase})") from None
        raise
    layers = ("peak",) if trial.plan.device == "cpu" else _DEVICE_LAYERS
    ns = float(np.median(samples[measured.quantities[0].name])) / batch
    return BatchTry(batch, "fits", next((held[layer] for layer in layers if layer in held), None), ns)


def _left(rules: _Rules) -> float:
    return max(rules.seconds_left, _SHORTEST_TRY_S)


def _require_right(materials: Materials, got: Arrays, batch: int, in_force: dict[str, str]) -> None:
    """Compare the answer with the race's own, for whole copies of its items."""
    side = mode_side(materials.work.mode)
    copies = side.copies(materials, got, batch)
    for name, array in got.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise answers.OtherWork(f"{name} is not finite at batch {batch}", "E_OUTPUT")
    chosen = np.unique(np.linspace(0, copies - 1, min(copies, _MOST_COPIES_CHECKED)).astype(int))
    for number in chosen:
        part = {name: side.copy(materials, name, array, int(number)) for name, array in got.items()}
        errors = answers.array_errors(materials, part, "inputs", f"at batch {batch}")
        answers.require_right(errors, in_force)
