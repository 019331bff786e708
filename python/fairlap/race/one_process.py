"""One contestant's process from its start to its end, and everything that can come of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairlap import verdict
from fairlap.errors import FairlapError
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.meters import disturbances
from fairlap.meters.energy import Sensed
from fairlap.models.safetensors import BadFile
from fairlap.race import answers
from fairlap.race.answers import Agreement
from fairlap.race.conditions import environment_of
from fairlap.race.fed_check import Feeding
from fairlap.race.materials import Materials
from fairlap.race.plan import Block, Plan
from fairlap.race.process_result import AnswerError, ProcessResult, Timing
from fairlap.scenarios.latency_messages import Measured, MeasuredQuantity
from fairlap.worker import protocol


@dataclass(frozen=True)
class Bench:
    """Where a race puts the answers, and what it remembers of them."""

    scratch: Path
    agreement: Agreement
    sensed: Sensed
    feeding: Feeding


_FEWEST_CALLS = 10
_FIRST = "before"
_PER_CALL = {
    "process_minor_faults": "page_faults",
    "process_major_faults": "major_faults",
    "process_voluntary_switches": "voluntary_switches",
    "process_involuntary_switches": "involuntary_switches",
    "migrations": "migrations",
    "thread_cpu_ns": "thread_cpu_ns",
    "process_cpu_ns": "process_cpu_ns",
}


def run_process(
    process: ProcessResult, block: Block, plan: Plan, materials: Materials, runner: Runner, bench: Bench
) -> Samples:
    """Fill in the result and return the samples; there are none when the process was lost. Raises only Ctrl-C."""
    if runner.missing:
        process.outcome, process.message = "not_installed", str(runner.missing)
        process.code = runner.missing.code
        return {}
    try:
        return _run(process, block, plan, materials, runner, bench)
    except WorkerLost as found:
        lost = under_a_limit(found, plan.limits.memory_bytes)
        process.outcome, process.code, process.message = lost.outcome, lost.code, lost.message
        process.details = lost.details
    except answers.OtherWork as wrong:
        process.outcome, process.code, process.message = "disqualified", wrong.code, str(wrong)
    except BadFile as wrong:
        process.outcome, process.code, process.message = "disqualified", "E_OUTPUT", str(wrong)
    except FairlapError as error:
        process.outcome, process.code, process.message = "failed", error.code, str(error)
    return {}


def _run(
    process: ProcessResult, block: Block, plan: Plan, materials: Materials, runner: Runner, bench: Bench
) -> Samples:
    limits = plan.limits
    with WorkerProcess(
        runner.command,
        environment=environment_of(block, runner.environment),
        start_s=limits.start_s,
        cores=block.cores,
        memory_limit_bytes=limits.memory_bytes,
    ) as worker:
        process.phases_s = worker.phases_s  # one and the same, so that a lost worker's phases are kept
        prepared = worker.prepare(request_for(plan, materials, runner), within_s=limits.prepare_s)
        process.version, process.in_force = prepared.version, prepared.in_force
        answers.require_settings(prepared.in_force, plan.threads, materials.work.precision)
        answers.require_weights(materials, prepared.weights_hash)
        first = _answer(worker, process, materials, "inputs", _FIRST, bench, limits.answer_s)
        _record_errors(process, materials, bench.agreement.errors(materials, process.contestant, first))
        changed = _answer(worker, process, materials, "changed", "changed inputs", bench, limits.answer_s)
        answers.require_changed(first, changed)
        if bench.feeding:
            bench.feeding.begin(worker, process, materials, bench.scratch, limits.answer_s)
        # A slow call is measured for longer: a median of one sample would be no median.
        seconds = max(plan.measuring.seconds, _FEWEST_CALLS * process.phases_s["checked_calls"])
        disturbance = disturbances.DisturbanceMeter()
        measured, samples_ns = worker.measure(
            seconds=seconds, samples=plan.measuring.samples, within_s=limits.measure_s, energy=bool(bench.sensed.idle)
        )
        process.machine = disturbance.readings()
        if bench.feeding:
            fed = bench.scratch / "fed.safetensors"
            worker.answer("fed", fed, within_s=limits.answer_s)
            bench.feeding.hold_answer(fed, process, materials)
        _answer(worker, process, materials, "inputs", "after", bench, limits.answer_s)
        process.memory = worker.quit().memory
    _record(process, measured, samples_ns)
    process.idle_power = bench.sensed.idle
    if process.energy is None:
        process.energy_absent = bench.sensed.absent or "its worker read no sensor of power or energy"
    return samples_ns


def request_for(plan: Plan, materials: Materials, runner: Runner) -> protocol.Prepare:
    work = materials.work
    inputs = str(materials.inputs_file("inputs"))
    return protocol.Prepare(
        framework=runner.adapter,
        workload=materials.package,
        batch=work.batch,
        threads=plan.threads,
        weights=str(materials.weights_file),
        inputs=inputs,
        changed=str(materials.inputs_file("changed")),
        labels=inputs if materials.spec.loss == "cross_entropy" else None,
        mode=work.mode,
        precision=work.precision,
        variant=runner.name.variant,
        device=plan.device,
        options=dict(runner.name.options),
    )


def _answer(
    worker: WorkerProcess,
    process: ProcessResult,
    materials: Materials,
    which: protocol.Which,
    when: str,
    bench: Bench,
    limit_s: float,
) -> Path:
    """Ask for an answer, compare it with the reference, and record the error also when it is right."""
    file = bench.scratch / f"{when.replace(' ', '-')}.safetensors"
    file.unlink(missing_ok=True)
    seconds = worker.answer(which, file, within_s=limit_s)
    if when != _FIRST:
        process.phases_s["checked_calls"] = process.phases_s.get("checked_calls", 0.0) + seconds
    _record_errors(process, materials, answers.answer_errors(materials, file, which, when))
    return file


def _record_errors(process: ProcessResult, materials: Materials, errors: list[AnswerError]) -> None:
    if materials.spec.computes:
        process.errors += errors
    answers.require_right(errors, process.in_force)


def _record(process: ProcessResult, measured: Measured, samples_ns: Samples) -> None:
    headline = samples_ns[measured.quantities[0].name]
    calls = max(1, len(headline) * measured.calls_per_sample)
    process.per_call = {name: measured.counts[key] / calls for key, name in _PER_CALL.items() if key in measured.counts}
    process.feeding, process.warnings, process.energy = measured.feeding, measured.warnings, measured.energy
    if measured.warm_up is not None:
        process.phases_s["warm_up"] = measured.warm_up.elapsed_s
    measured_s = float(np.nansum(headline)) * measured.calls_per_sample / 1e9
    process.phases_s["measured"] = measured_s
    if measured_s > 0 and (switches := measured.counts.get("process_involuntary_switches")) is not None:
        process.machine[disturbances.INVOLUNTARY] = switches / measured_s
    for quantity in measured.quantities:
        samples = samples_ns[quantity.name]
        process.timings[quantity.name] = _timing(samples[~np.isnan(samples)], measured, quantity, process.contestant)


def _timing(samples: np.ndarray, measured: Measured, quantity: MeasuredQuantity, whose: str) -> Timing:
    steady = verdict.steady_state(samples, whose)
    p50, p90, p99 = (verdict.process_figure(samples, steady, quantile=q, whose=whose).value for q in (0.5, 0.9, 0.99))
    return Timing(
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        samples=len(samples),
        calls_per_sample=measured.calls_per_sample,
        steady_from=steady.steady_from,
        course=steady.course.value,
        method=quantity.method,
        resolution_ns=quantity.resolution_ns,
    )
