"""The smallest memory in which a contestant still does its work.

Each try is a fresh worker under a limit, from its start to a checked answer and a few timed calls.

The limit is found by halving. More room need not always help, so the smallest limit that worked is tried once more, and
one that fails then counts as too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.frameworks.registry import framework_named
from fairlap.launch.memory_groups import GroupsHere, groups_here, limited_group, started_in
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.models.array_files.safetensors import BadFile
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Limits, Plan
from fairlap.race.processes.block_worker import block_worker
from fairlap.scenarios.process_result import ProcessResult, SmallestMemory
from fairlap.worker.protocol import Prepare

MOST_TRIES = 40


@dataclass(frozen=True)
class Found:
    """``limit`` ran twice, and no smaller limit that was tried did. Without a limit, there is a reason."""

    limit: int | None
    resolution: int  # a limit smaller by this was not found to work
    tries: int
    why: str = ""


def smallest_limit(runs: Callable[[int], str], first: int, most: int, resolution_share: float) -> Found:
    """Find the smallest limit under which it runs.

    ``runs`` tries a limit and returns why it failed, or an empty text. ``first`` is a guess that ought to work; it is
    doubled up to ``most`` until one does.
    """
    tries = 0

    def works(limit: int) -> str:
        nonlocal tries
        tries += 1
        return runs(limit)

    low, high = 0, min(first, most)
    while why := works(high):
        if high >= most or tries >= MOST_TRIES:
            return Found(None, 0, tries, f"it did not run under the largest limit that was tried: {why}")
        low, high = high, min(2 * high, most)
    resolution = max(1, round(resolution_share * high))
    worked = [high]
    while tries < MOST_TRIES:
        while high - low > resolution and tries < MOST_TRIES:
            middle = low + (high - low) // 2
            if works(middle):
                low = middle
            else:
                high = middle
                worked.append(middle)
        if not works(high):
            return Found(high, high - low, tries)
        low = high
        worked = [limit for limit in worked if limit > low]
        if not worked:
            return Found(None, 0, tries, "it ran under its largest limit once, and not the second time")
        high = min(worked)
    return Found(None, 0, tries, f"{tries} tries found no limit under which it ran twice")


RESOLUTION_SHARE = 1 / 32
CONTROL_GROUP = "control group"
ADDRESS_SPACE = "address space"
_SLOWER_AT_MOST = 5.0  # than without a limit; a try that takes longer has failed
_SHORTEST_TRY_S = 20.0
_SAMPLES, _WARM_UP_CALLS = 10, 3
_FIRST_GUESS_BYTES = 2**30  # where nothing is known of it
_ROOM = 1.1  # of the first try over what was seen without a limit
_MOST_TIMES_THE_FIRST = 16


@dataclass(frozen=True)
class Trial:
    """All that a try needs to know, but for its limit."""

    plan: Plan
    block: Block  # whose draws all tries share
    materials: Materials
    runner: Runner
    request: Prepare
    processes: Sequence[ProcessResult]  # of the same contestant, without a limit
    scratch: Path
    feeding: Feeding  # of a race with data: a try is fed as the race feeds


def smallest_memory(trial: Trial, groups: GroupsHere | None = None) -> SmallestMemory:
    finished = [process for process in trial.processes if process.finished]
    if why := next((process.elsewhere for process in finished), ""):
        return SmallestMemory("", None, 0, 0, why)
    if trial.plan.device != "cpu":
        name = trial.runner.name.framework
        limit = framework_named(name).device_memory_limit if name else ""
        layers: tuple[str, ...] = ("allocator_reserved_peak", "allocator_live_peak")
        if not limit:
            return SmallestMemory("", None, 0, 0, "its framework offers no limit of its own for a device's memory")
        under: _Under = _on_device
    else:
        groups = groups or groups_here()
        limit = ADDRESS_SPACE if groups.folder is None else CONTROL_GROUP
        layers = ("address_space_peak",) if groups.folder is None else ("peak",)
        under = _address_space if groups.folder is None else _in_groups(groups.folder)
    if not finished:
        return SmallestMemory(limit, None, 0, 0, "no process finished without a limit")
    first = _first_guess(finished, layers)
    most = min(_MOST_TIMES_THE_FIRST * first, trial.plan.limits.memory_bytes or _MOST_TIMES_THE_FIRST * first)
    within_s = max(_SHORTEST_TRY_S, _SLOWER_AT_MOST * max(process.elapsed_s for process in finished))
    found = smallest_limit(lambda bytes_: _why_not(trial, under, bytes_, within_s), first, most, RESOLUTION_SHARE)
    return SmallestMemory(limit, found.limit, found.resolution, found.tries, found.why)


def _first_guess(finished: Sequence[ProcessResult], layers: Sequence[str]) -> int:
    for layer in layers:
        seen = [process.memory.bytes[layer] for process in finished if process.memory.bytes.get(layer)]
        if seen:
            return round(_ROOM * max(seen))
    return _FIRST_GUESS_BYTES


@dataclass(frozen=True)
class _Limited:
    command: tuple[str, ...]
    address_space_bytes: int | None = None
    device_bytes: int | None = None


_Under = Callable[[Trial, int], Iterator[_Limited]]


def _address_space(trial: Trial, limit_bytes: int) -> Iterator[_Limited]:
    yield _Limited(trial.runner.command, address_space_bytes=limit_bytes)


def _in_groups(folder: Path) -> _Under:
    def under(trial: Trial, limit_bytes: int) -> Iterator[_Limited]:
        with limited_group(folder, limit_bytes) as group:
            yield _Limited(started_in(group, trial.runner.command), trial.plan.limits.memory_bytes)

    return under


def _on_device(trial: Trial, limit_bytes: int) -> Iterator[_Limited]:
    yield _Limited(trial.runner.command, trial.plan.limits.memory_bytes, limit_bytes)


def _why_not(trial: Trial, under: _Under, limit_bytes: int, within_s: float) -> str:
    """Try a limit, and return nothing when it did its work.

    Whatever else becomes of a try, it has not run: short of memory, programs crash, hang and give nonsense as well as
    run out of it.
    """
    try:
        with contextmanager(under)(trial, limit_bytes) as limited:
            _run(trial, limited, within_s)
    except WorkerLost as lost:
        return under_a_limit(lost, limit_bytes).message
    except (FairlapError, answers.OtherWork, BadFile) as error:
        return str(error)
    except OSError as error:
        return f"the limit could not be set: {error.strerror}"
    return ""


def _run(trial: Trial, limited: _Limited, within_s: float) -> None:
    answer = trial.scratch / "under-a-limit.safetensors"
    answer.unlink(missing_ok=True)
    request = msgspec.structs.replace(trial.request, device_memory_limit_bytes=limited.device_bytes)
    runner = replace(trial.runner, command=limited.command, environment=_environment(trial, limited))
    limits = Limits(start_s=within_s, memory_bytes=limited.address_space_bytes)
    with block_worker(trial.block, runner, limits) as worker:
        prepared = worker.prepare(request, within_s=within_s)
        worker.answer("inputs", answer, within_s=within_s)
        errors = answers.answer_errors(trial.materials, answer, "inputs", "under a limit")
        answers.require_right(errors, prepared.in_force, trial.materials.own_types)
        tried = _process_of_try(trial, prepared.in_force)
        if trial.feeding:
            trial.feeding.begin(worker, tried, trial.materials, trial.scratch, within_s)
        worker.measure(samples=_SAMPLES, warmup=_WARM_UP_CALLS, calls_per_sample=1, within_s=within_s)
        if trial.feeding:
            worker.answer("fed", answer, within_s=within_s)
            trial.feeding.hold_answer(answer, tried, trial.materials)
        worker.quit()


def _process_of_try(trial: Trial, in_force: dict[str, str]) -> ProcessResult:
    """Where the checks of what is fed write to. It is no process of the race and is not kept."""
    work_id, contestant = trial.plan.works[trial.block.work].id, trial.runner.name.text
    return ProcessResult(trial.block.number, 0, contestant, work_id, trial.block.conditions, in_force=in_force)


def _environment(trial: Trial, limited: _Limited) -> dict[str, str]:
    if limited.device_bytes is None:
        return trial.runner.environment
    return trial.runner.environment_with(device_memory_limit_bytes=limited.device_bytes, cache_folder="")
