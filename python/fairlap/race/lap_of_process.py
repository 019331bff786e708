"""One contestant's process from its start to its end, and everything that can come of it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from fairlap import verdict
from fairlap.errors import FairlapError
from fairlap.race import answers, protocol
from fairlap.race.conditions import environment_of
from fairlap.race.contestants import Runner
from fairlap.race.laps import Figure, Lap
from fairlap.race.materials import Materials
from fairlap.race.plan import Block, Plan
from fairlap.race.worker_process import WorkerLost, WorkerProcess
from fairlap.workloads.safetensors import BadFile


def lap_of_process(lap: Lap, block: Block, plan: Plan, materials: Materials, runner: Runner, scratch: Path) -> None:
    """Fill in the lap. Nothing that the process does is raised here but Ctrl-C."""
    if runner.missing:
        lap.outcome, lap.message = "not_installed", runner.missing
        return
    try:
        _run(lap, block, plan, materials, runner, scratch)
    except WorkerLost as lost:
        lap.outcome, lap.message = lost.outcome, str(lost)
    except (answers.OtherWork, BadFile) as wrong:
        lap.outcome, lap.message = "disqualified", str(wrong)
    except (FairlapError, verdict.BadInput) as error:
        lap.outcome, lap.message = "failed", str(error)


def _run(lap: Lap, block: Block, plan: Plan, materials: Materials, runner: Runner, scratch: Path) -> None:
    work, limits = materials.work, plan.limits
    command = (*runner.command, "--cores", ",".join(map(str, block.cores)))
    if limits.memory_bytes is not None:
        command = (*command, "--memory", str(limits.memory_bytes))

    def keep(phase: protocol.Phase) -> None:
        lap.phases_s[phase.name] = lap.phases_s.get(phase.name, 0.0) + phase.seconds

    began_s = time.monotonic()
    with WorkerProcess(command, environment_of(block, runner.environment), on_phase=keep) as worker:
        try:
            worker.hello(limits.start_s)
            lap.phases_s["start"] = time.monotonic() - began_s
            prepared = worker.ask(_prepare(plan, materials, runner), protocol.Prepared, limits.prepare_s)
            lap.version, lap.in_force = prepared.version, prepared.in_force
            answers.require_settings(prepared.in_force, plan.threads, work.precision)
            answers.require_weights(materials, prepared.weights_hash)
            first = _answer(worker, lap, materials, "inputs", "before", scratch, limits.answer_s)
            changed = _answer(worker, lap, materials, "changed", "changed inputs", scratch, limits.answer_s)
            answers.require_changed(first, changed)
            wish = protocol.Measure(plan.measuring.seconds, plan.measuring.samples)
            laps, raw = worker.measure(wish, limits.measure_s)
            _answer(worker, lap, materials, "inputs", "after", scratch, limits.answer_s)
            lap.memory_bytes = worker.quit().memory_bytes
        finally:
            lap.last_words = worker.last_words()[-2000:]
    lap.per_call, lap.warnings = laps.per_call, laps.warnings
    lap.phases_s["warm_up"] = laps.warm_up_s
    samples = np.frombuffer(raw, "<f8")
    lap.phases_s["measured"] = float(samples.sum()) * laps.calls_per_sample / 1e9
    lap.figures[laps.quantity] = _figure(samples[~np.isnan(samples)], laps, runner.name.text)


def _prepare(plan: Plan, materials: Materials, runner: Runner) -> protocol.Prepare:
    work = materials.work
    return protocol.Prepare(
        framework=runner.name.framework,
        adapter=runner.adapter,
        variant=runner.name.variant,
        options=dict(runner.name.options),
        model=work.model,
        package=materials.package,
        batch=work.batch,
        mode=work.mode,
        precision=work.precision,
        threads=plan.threads,
        device=plan.device,
        weights_file=str(materials.weights_file),
        inputs_file=str(materials.inputs_file("inputs")),
    )


def _answer(
    worker: WorkerProcess, lap: Lap, materials: Materials, which: str, when: str, scratch: Path, limit_s: float
) -> Path:
    """Ask for an answer, hold it against the reference, and keep the error also when it is right."""
    file = scratch / f"{when.replace(' ', '-')}.safetensors"
    file.unlink(missing_ok=True)
    request = protocol.Answer(str(materials.inputs_file(which)), str(file))
    answered = worker.ask(request, protocol.Answered, limit_s)
    phase = "first_call" if "first_call" not in lap.phases_s else "checked_calls"
    lap.phases_s[phase] = lap.phases_s.get(phase, 0.0) + answered.seconds
    errors = answers.answer_errors(materials, file, which, when)
    lap.errors += errors
    answers.require_right(errors, lap.in_force)
    return file


def _figure(samples: np.ndarray, laps: protocol.Laps, whose: str) -> Figure:
    steady = verdict.steady_state(samples, whose)
    p50, p90, p99 = (verdict.process_figure(samples, steady, quantile=q, whose=whose).value for q in (0.5, 0.9, 0.99))
    return Figure(
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        samples=len(samples),
        calls_per_sample=laps.calls_per_sample,
        steady_from=steady.steady_from,
        course=steady.course.value,
        method=laps.method,
        resolution_ns=laps.resolution_ns,
    )
