"""The smallest memory in which a contestant still does its work: each try a fresh worker under a limit, from its start
to a checked answer and a few timed calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.race import answers
from fairlap.race.conditions import environment_of
from fairlap.race.contestants import Runner
from fairlap.race.fed_laps import Feeding
from fairlap.race.laps import Lap, SmallestMemory
from fairlap.race.materials import Materials
from fairlap.race.memory_groups import GroupsHere, groups_here, limited_group, started_in
from fairlap.race.plan import Block, Plan
from fairlap.race.protocol import Prepare
from fairlap.race.smallest_limit import smallest_limit
from fairlap.race.worker_lost import WorkerLost, under_a_limit
from fairlap.race.worker_process import WorkerProcess
from fairlap.workloads.safetensors import BadFile

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
    laps: Sequence[Lap]  # of the same contestant, without a limit
    scratch: Path
    feeding: Feeding  # of a race with data: a try is fed as the race feeds


def smallest_memory(trial: Trial, groups: GroupsHere | None = None) -> SmallestMemory:
    finished = [lap for lap in trial.laps if lap.finished]
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
    within_s = max(_SHORTEST_TRY_S, _SLOWER_AT_MOST * max(lap.elapsed_s for lap in finished))
    found = smallest_limit(lambda bytes_: _why_not(trial, under, bytes_, within_s), first, most, RESOLUTION_SHARE)
    return SmallestMemory(limit, found.limit, found.resolution, found.tries, found.why)


def _first_guess(finished: Sequence[Lap], layers: Sequence[str]) -> int:
    for layer in layers:
        seen = [lap.memory_bytes[layer] for lap in finished if lap.memory_bytes.get(layer)]
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
    """Nothing when it did its work. Whatever else becomes of a try, it has not run: short of memory, programs crash,
    hang and talk nonsense as well as run out of it."""
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
    with WorkerProcess(
        limited.command,
        environment=environment_of(trial.block, _environment(trial, limited)),
        start_s=within_s,
        cores=trial.block.cores,
        memory_limit_bytes=limited.address_space_bytes,
    ) as worker:
        prepared = worker.prepare(request, within_s=within_s)
        worker.answer("inputs", answer, within_s=within_s)
        answers.require_right(
            answers.answer_errors(trial.materials, answer, "inputs", "under a limit"), prepared.in_force
        )
        tried = _lap_of_try(trial, prepared.in_force)
        if trial.feeding:
            trial.feeding.begin(worker, tried, trial.materials, trial.scratch, within_s)
        worker.measure(samples=_SAMPLES, warmup=_WARM_UP_CALLS, calls_per_sample=1, within_s=within_s)
        if trial.feeding:
            worker.answer("fed", answer, within_s=within_s)
            trial.feeding.hold_answer(answer, tried, trial.materials)
        worker.quit()


def _lap_of_try(trial: Trial, in_force: dict[str, str]) -> Lap:
    """Where the checks of what is fed write to. It is no lap of the race and is not kept."""
    work, contestant = trial.materials.work.label, trial.runner.name.text
    return Lap(trial.block.number, 0, contestant, work, trial.block.conditions, in_force=in_force)


def _environment(trial: Trial, limited: _Limited) -> dict[str, str]:
    name = trial.runner.name
    if limited.device_bytes is None or not name.framework:
        return trial.runner.environment
    plan = trial.plan
    wanted = Settings(plan.threads, name.variant, plan.device, dict(name.options), limited.device_bytes)
    return framework_named(name.framework).environment_for(wanted)
