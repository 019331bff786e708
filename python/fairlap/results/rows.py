"""A saved run as rows: one for every contestant on every work under each kind of conditions.

Two short texts: which machine, and which software around the contestant. Equal ones mean equal facts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from fairlap.machine.differences import lasting
from fairlap.race.process_result import ProcessResult
from fairlap.race.run import Run
from fairlap.request.work import Work
from fairlap.results.energy import energy_by_sensor, energy_of
from fairlap.results.estimates import Told, bounded, estimate, told_or, why_not
from fairlap.results.feeding import feeding_of, stall_shares_of
from fairlap.results.memory import memory_absent, memory_by_layer, memory_of, smallest_memory_of
from fairlap.results.prices import Price
from fairlap.results.results import ContestantResult, Results, WorkResult, results_of
from fairlap.results.row import Estimate, ModeOfProcesses, Row

_DIGITS = 12


def fingerprints_of(run: Run, result: ContestantResult) -> tuple[str, str]:
    around = {
        "fairlap": run.fairlap,
        "versions": sorted({process.version for process in result.processes}),
        "settings": next((process.in_force for process in result.processes if process.in_force), {}),
    }
    return fingerprint(lasting(run.machine)), fingerprint(around)


def fingerprint(facts: object) -> str:
    """Of anything that JSON can hold; the order of keys does not matter."""
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:_DIGITS]


_NS_PER_S = 1e9
IS_THE_BASELINE = "it is the baseline"
_QUANTITIES = ("host_issue_ns", "device_span_ns", "kernel_sum_ns")


def rows_of_run(
    run: Run, run_id: str, *, baseline: str = "", price: Price | None = None, results: Results | None = None
) -> list[Row]:
    """``baseline`` names who the others are held against; without one it is the fastest that is ranked."""
    shown = results or results_of(run.plan, run.processes)
    works = {work.label: work for work in run.plan.works}
    return [
        _row(run, run_id, works[work_result.work], work_result, row, baseline, price)
        for work_result in shown.work_results
        for row in work_result.rows
    ]


def _row(
    run: Run,
    run_id: str,
    work: Work,
    work_result: WorkResult,
    result: ContestantResult,
    baseline: str,
    price: Price | None,
) -> Row:
    name = next(each for each in run.plan.contestants if each.text == result.contestant)
    machine, environment = fingerprints_of(run, result)
    latency = estimate(result.finished, lambda process: _headline(process).p50_ns)
    told: dict[str, Told] = {
        "version": told_or(
            next((process.version for process in result.processes if process.version), None),
            "it was never imported",
        ),
        "place": told_or(
            _place(work_result, result),
            work_result.why_no_verdict or result.trouble or "it is not ranked",
        ),
        **_latencies(result, work, latency),
        **feeding_of(result),
        **_phases(result, work),
        **memory_of(result),
        **smallest_memory_of(result, asked_for=run.plan.min_memory and work_result.conditions == run.plan.headline),
        **energy_of(result, work),
        **_cost(estimate(result.finished, lambda process: process.headline_ns), work, price),
        **_errors(result),
        "accuracy": Told(None, "the model has no dataset"),
        **_against(work_result, result, baseline),
    }
    return Row(
        run=run_id,
        recorded_at=run.began_at,
        fairlap=run.fairlap,
        machine=machine,
        environment=environment,
        workload=work.model,
        mode=work.mode,
        precision=work.precision,
        batch=work.batch,
        threads=run.plan.threads,
        device=run.plan.device,
        data=run.plan.data,
        conditions=work_result.conditions,
        contestant=result.contestant,
        framework=name.framework or name.program,
        variant=name.variant,
        settings=next((process.in_force for process in result.processes if process.in_force), {}),
        outcome=result.worst_outcome,
        message=result.trouble,
        modes=_modes(result),
        stall_shares=stall_shares_of(result),
        memory_bytes=memory_by_layer(result),
        memory_absent=memory_absent(result),
        energy_by_sensor_j=energy_by_sensor(result, work),
        blocks_kept=len(work_result.blocks.kept),
        blocks_dropped=len(work_result.blocks.dropped),
        processes=len(result.processes),
        processes_finished=len(result.finished),
        warnings=_warnings(work_result, result),
        absent={column: each.why for column, each in told.items() if each.value is None},
        **{column: each.value for column, each in told.items()},
    )


def _headline(process: ProcessResult) -> Any:
    return next(iter(process.figures.values()))


def _latencies(result: ContestantResult, work: Work, latency: Estimate | None) -> dict[str, Told]:
    processes, why = result.finished, why_not(result)
    first = _headline(processes[0]) if processes else None
    told = {
        "latency_p50_ns": told_or(latency, why),
        "latency_p90_ns": told_or(estimate(processes, lambda process: _headline(process).p90_ns), why),
        "latency_p99_ns": told_or(estimate(processes, lambda process: _headline(process).p99_ns), why),
        "method": told_or(first and first.method, why),
        "resolution_ns": told_or(first and first.resolution_ns, why),
        "throughput_per_s": told_or(
            estimate(processes, lambda process: work.batch / process.headline_ns * _NS_PER_S), why
        ),
    }
    for name in _QUANTITIES:
        told[name] = told_or(
            estimate(processes, partial(_median_of, name)), "the method does not give it" if processes else why
        )
    return told


def _median_of(quantity: str, process: ProcessResult) -> float | None:
    figure = process.figures.get(quantity)
    return None if figure is None else figure.p50_ns


def _phases(result: ContestantResult, work: Work) -> dict[str, Told]:
    processes, why = result.finished, why_not(result)
    first = estimate(processes, ProcessResult.time_to_first_s)
    gradients = work.mode == "grad"
    return {
        "import_s": told_or(estimate(processes, partial(_phase, "import")), why or "it told of no such phase"),
        "build_s": told_or(estimate(processes, partial(_phase, "build")), why or "it told of no such phase"),
        "compile_s": told_or(
            estimate(processes, ProcessResult.compiling_s), why or "it compiles nothing ahead of its first call"
        ),
        "time_to_first_inference_s": Told(None, "gradients were measured") if gradients else told_or(first, why),
        "time_to_first_gradient_s": told_or(first, why) if gradients else Told(None, "no gradients were measured"),
    }


def _phase(name: str, process: ProcessResult) -> float | None:
    return process.phases_s.get(name)


def _cost(latency: Estimate | None, work: Work, price: Price | None) -> dict[str, Told]:
    why = "no price was given" if price is None else "there is no latency" if latency is None else ""
    if price is None or latency is None:
        return {"cost_per_1000_items": Told(None, why), "currency": Told(None, why)}

    def of(latency_ns: float | None) -> float | None:
        return None if latency_ns is None else price.of_seconds(1000 / work.batch * latency_ns / _NS_PER_S)

    cost = Estimate(price.of_seconds(1000 / work.batch * latency.value / _NS_PER_S), of(latency.low), of(latency.high))
    return {"cost_per_1000_items": Told(cost), "currency": Told(price.currency)}


def _errors(result: ContestantResult) -> dict[str, Told]:
    errors = [error for process in result.processes for error in process.errors]
    why = "" if errors else why_not(result) or "no answer was checked"
    # A gradient is checked along directions; it has a distance, and no elements that could be off.
    by_element = [each for each in errors if each.told_worst_absolute is not None or each.told_relative is None]
    return {
        "error_relative": _worst([each.told_relative for each in errors], why),
        "error_absolute": _worst([each.told_worst_absolute for each in by_element], why),
    }


def _worst(distances: Sequence[float | None], why: str) -> Told:
    known = [distance for distance in distances if distance is not None]
    if not distances:
        return Told(None, why or "no single elements were checked")
    return Told(max(known)) if len(known) == len(distances) else Told(None, "an answer was not finite")


def _against(work_result: WorkResult, result: ContestantResult, baseline: str) -> dict[str, Told]:
    name = result.contestant
    ranked = [row.contestant for row in work_result.rows if row.ranked]
    if baseline and baseline not in ranked:
        why = f"the baseline {baseline} is not ranked"
    elif not ranked:
        why = "nobody is ranked"
    elif (held_against := baseline or ranked[0]) == name:
        why = IS_THE_BASELINE
    else:
        both = {name, held_against}
        found = next((each for each in work_result.comparisons if {each.a, each.b} == both), None)
        if found is not None:
            told = found if found.a == name else found.reversed()
            return {
                "baseline": Told(held_against),
                "ratio": Told(bounded(told.ratio, told.interval.low, told.interval.high)),
                "verdict": Told(told.verdict.value),
                "detectable_effect": told_or(
                    told.detectable_effect if np.isfinite(told.detectable_effect) else None, "no block shows any spread"
                ),
            }
        why = work_result.why_no_verdict or result.trouble or "it is not ranked"
    return {key: Told(None, why) for key in ("baseline", "ratio", "verdict", "detectable_effect")}


def _place(work_result: WorkResult, result: ContestantResult) -> str | None:
    places = work_result.standing.places if work_result.standing else ()
    return next((place.label for place in places if place.contestant == result.contestant), None)


def _modes(result: ContestantResult) -> list[ModeOfProcesses]:
    if result.figure is None or not result.figure.modes.several:
        return []
    return [ModeOfProcesses(mode.value, mode.share) for mode in result.figure.modes.modes]


def _warnings(work_result: WorkResult, result: ContestantResult) -> list[str]:
    """Each once, what held for all contestants first."""
    own = (text for process in result.processes for text in process.warnings)
    return list(dict.fromkeys([work_result.busy, *own] if work_result.busy else own))
