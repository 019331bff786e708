"""Time the collective operations of frameworks: each in fresh ranks, in blocks whose order is drawn."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import msgspec

from fairlap.launch.runners import Runner, runners_for
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.files.scratch_folder import remove_abandoned
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.request.fields.scale import Collective, Scale
from fairlap.request.names import ContestantName
from fairlap.scenarios.collectives.collective_messages import COPY, TimeCollective, TimedOperation
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives, RankLimits

MEMORY = "memory"
"""The name under which copies within the memory of each rank are listed."""

_GRACE_S = 10.0  # what conducts ranks reports first which of them did not answer
_START_S, _QUIT_S = 60.0, 40.0


class CollectivesPlan(msgspec.Struct, frozen=True):
    ranks: int
    threads: int  # of each rank
    operations: tuple[Collective, ...]
    sizes: tuple[int, ...]  # in bytes, that each rank gives
    blocks: int
    seconds: float  # for each operation and size in each block
    seed: int
    limits: RankLimits


class Trial(msgspec.Struct, frozen=True):
    """One operation with one size in one block."""

    contestant: str
    operation: str
    bytes: int
    block: int
    median_ns: float | None  # of the slowest rank
    why: str = ""  # there is none: the framework lacks the operation
    wrong: str = ""


class CollectivesRun(msgspec.Struct):
    plan: CollectivesPlan
    trials: list[Trial]
    failures: dict[str, str]  # by contestant: why it has no times, or not those of all blocks
    codes: dict[str, str]  # of the failures
    versions: dict[str, str]
    exchange: dict[str, str]  # by contestant: through what its ranks exchange


def run_collectives(
    contestants: Sequence[ContestantName], plan: CollectivesPlan, report: Callable[[str], None]
) -> CollectivesRun:
    found = CollectivesRun(plan, [], {}, {}, {}, {})
    order = random.Random(plan.seed)
    with ExitStack() as stack:
        stack.callback(remove_abandoned)  # of workers that were killed
        caches = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runners = runners_for(tuple(contestants), plan.threads, "cpu", caches, stack, report)
        for block in range(plan.blocks):
            for place, runner in enumerate(order.sample(runners, len(runners))):
                if runner.name.text not in found.failures:
                    report(f"[block {block + 1}/{plan.blocks}] {runner.name.text}")
                    _one_process(runner, block, found, order, copies=place == 0)
    return found


def _one_process(runner: Runner, block: int, found: CollectivesRun, order: random.Random, *, copies: bool) -> None:
    plan, name = found.plan, runner.name.text
    if runner.missing is not None:
        found.failures[name], found.codes[name] = str(runner.missing), runner.missing.code
        return
    operations: list[TimedOperation] = [*plan.operations, *([COPY] * copies)]
    asked = [(operation, size) for operation in operations for size in plan.sizes]
    order.shuffle(asked)
    request = PrepareCollectives(runner.adapter, plan.threads, Scale(plan.threads, plan.ranks), limits=plan.limits)
    within_s = plan.limits.start_s + plan.limits.prepare_s + _GRACE_S
    try:
        with WorkerProcess(
            runner.command, environment={**own_environment(), **runner.environment}, start_s=_START_S
        ) as worker:
            prepared = worker.ask(request, within_s=within_s)
            found.versions[name] = prepared.version
            found.exchange[name] = prepared.in_force.get("ranks", "")
            for operation, size in asked:
                found.trials.append(_trial(worker, name, operation, size, block, plan))
            worker.quit(within_s=_QUIT_S)
    except WorkerLost as lost:
        found.failures[name], found.codes[name] = lost.message, lost.code


def _trial(
    worker: WorkerProcess, name: str, operation: TimedOperation, size: int, block: int, plan: CollectivesPlan
) -> Trial:
    request = TimeCollective(operation, size, plan.seconds)
    timed = worker.ask(request, within_s=plan.limits.measure_s + _GRACE_S)
    of = MEMORY if operation == COPY else name
    median_ns = median(timed.times_ns) if timed.times_ns and not timed.wrong else None
    return Trial(of, operation, size, block, median_ns, timed.why, timed.wrong)
