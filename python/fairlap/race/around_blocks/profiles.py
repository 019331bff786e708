"""Profile processes: after the blocks, each contestant again, in new processes in which nothing is timed.

A profiler slows down what it sees and keeps hooks in the framework, so its processes are separate from those of the
blocks, and what they show never enters a row or a verdict.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.machine.files.atomic_files import why_no_folder
from fairlap.models.array_files.safetensors import BadFile
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.at_scale import runner_for
from fairlap.race.processes.block_worker import block_worker, request_for
from fairlap.request.work import Work
from fairlap.scenarios.process_result import Outcome, ProcessResult
from fairlap.scenarios.untimed.profile_messages import ProfileCalls, Profiled

CODE = "E_PROFILE"
_SHORTEST_S = 0.1


@dataclass(frozen=True)
class Profiling:
    """Where profile processes get what they work on, and where what they found goes."""

    plan: Plan
    materials: Callable[[Work, int], Materials]
    runners: Sequence[Runner]
    scratch: Path
    keep: Callable[[ProfileResult], None]
    report: Callable[[str], None]
    traces: Path | None = None  # the folder of the profilers' own traces, one file for each contestant and work


def run_profiles(profiling: Profiling, processes: Sequence[ProcessResult], before: Sequence[ProfileResult]) -> None:
    """Of every contestant that finished, under the headline's conditions. Those that ran ``before`` are left out.

    Contestants take turns in drawn order, so that what the machine does meanwhile hits all of them.
    """
    plan = profiling.plan
    done = {each.key for each in before}
    finished = {(process.contestant, process.work_id) for process in processes if process.finished}
    for place, work in enumerate(plan.works):
        blocks = [block for block in plan.blocks if block.work == place and block.conditions == plan.headline]
        for number in range(plan.profile_processes if blocks else 0):
            block = blocks[number % len(blocks)]
            for runner_place in random.Random(f"{plan.seed} {number}").sample(block.order, len(block.order)):
                runner = runner_for(profiling.runners[runner_place], plan, work)
                key = (number, runner.name.text, work.id)
                if key in done or key[1:] not in finished:
                    continue
                materials = profiling.materials(plan.work_of(block, runner_place), block.data_seed)
                profiling.keep(_result(profiling, key, block, materials, runner))


def _result(
    profiling: Profiling, key: tuple[int, str, str], block: Block, materials: Materials, runner: Runner
) -> ProfileResult:
    """Whatever goes wrong becomes its outcome."""
    began_s = time.monotonic()

    def ended(outcome: Outcome, code: str, message: str) -> ProfileResult:
        elapsed_s = time.monotonic() - began_s
        return ProfileResult(*key, outcome=outcome, code=code, message=message, elapsed_s=elapsed_s)

    try:
        version, found = _profiled(profiling, block, materials, runner)
    except WorkerLost as lost:
        limited = under_a_limit(lost, profiling.plan.limits.memory_bytes)
        return ended(limited.outcome, limited.code, limited.message)
    except answers.OtherWork as wrong:
        return ended("disqualified", wrong.code, str(wrong))
    except BadFile as wrong:
        return ended("disqualified", "E_OUTPUT", str(wrong))
    except FairlapError as error:
        return ended("failed", error.code, str(error))
    if profiling.traces is not None and found.traced:
        _keep_trace(profiling, key)
    return ProfileResult(*key, version=version, profile=found.profile, elapsed_s=time.monotonic() - began_s)


def _profiled(profiling: Profiling, block: Block, materials: Materials, runner: Runner) -> tuple[str, Profiled]:
    """Profile a contestant whose answer is right in this process too, and return its version and the profile."""
    plan, limits = profiling.plan, profiling.plan.limits
    answer = profiling.scratch / "profiled.safetensors"
    for left in (answer, _trace_in(profiling)):
        left.unlink(missing_ok=True)
    with block_worker(block, runner, limits) as worker:
        prepared = worker.prepare(request_for(plan, materials, runner), within_s=limits.prepare_s)
        threads, own_types = plan.threads_of(materials.work), materials.own_types
        answers.require_settings(prepared.in_force, threads, materials.work.precision, own_types)
        answers.require_weights(materials, prepared.weights_hash)
        worker.answer("inputs", answer, within_s=limits.answer_s)
        errors = answers.answer_errors(materials, answer, "inputs", "profiled")
        answers.require_right(errors, prepared.in_force, own_types)
        seconds = max(plan.measuring.seconds, _SHORTEST_S)
        trace = "" if profiling.traces is None else str(_trace_in(profiling))
        return prepared.version, worker.ask(ProfileCalls(seconds, trace), within_s=limits.measure_s)


def _trace_in(profiling: Profiling) -> Path:
    return profiling.scratch / "trace.json"


def _keep_trace(profiling: Profiling, key: tuple[int, str, str]) -> None:
    """Copy the last process's trace, which replaces those before it."""
    assert profiling.traces is not None
    _, contestant, work = key
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{work}-{contestant}")
    file = profiling.traces / f"{name}.trace.json"
    try:
        profiling.traces.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_trace_in(profiling), file)
    except OSError as error:
        profiling.report(f"cannot write {file}: {error.strerror}")


def require_trace_folder(folder: Path | None, *, profiles: bool) -> None:
    """Raise InvalidRequest for what would be known only when the race is over. The first trace makes the folder."""
    if folder is None:
        return
    if not profiles:
        raise InvalidRequest("--trace keeps what profilers recorded; add --profile", code=CODE)
    if why := why_no_folder(folder):
        raise InvalidRequest(f"cannot write traces to {folder}: {why}", code=CODE)
