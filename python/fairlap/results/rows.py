"""A run as rows: one for every contestant on every work under each kind of conditions.

Two fingerprints in a row identify the machine and the software around the contestant; equal ones mean equal facts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.machine.differences import lasting
from fairlap.race.planning.shared_processes import starts_processes
from fairlap.race.run import Run
from fairlap.request.fields.package_origin import origin_of
from fairlap.request.names import REPORTED
from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.column_definitions.resources import time_to_first
from fairlap.results.columns.answers import agreement_of, errors_of, scores_of
from fairlap.results.columns.compilation import compilation_of, stalls_of, without_stall
from fairlap.results.columns.energy import energy_by_sensor, energy_of
from fairlap.results.columns.feeding import feeding_of, stall_shares_of
from fairlap.results.columns.generation import generation_of
from fairlap.results.columns.largest_batch import largest_batch_of, memory_by_batch, time_per_item_by_batch_ns
from fairlap.results.columns.latency import latency_of, modes_of
from fairlap.results.columns.learning.data_seeds import order_depends_on_data
from fairlap.results.columns.memory import (
    allocations_of,
    memory_absent,
    memory_by_layer,
    memory_of,
    smallest_memory_of,
)
from fairlap.results.columns.of_scenarios import absent_of, figures_of
from fairlap.results.columns.ranks import exchange_notice, ranks_of, straggler_notice
from fairlap.results.columns.roofline import roofline_of, roofs_under
from fairlap.results.columns.scaling import scale_of, scaling_cells
from fairlap.results.columns.utilisation import device_states_of, utilisation_of
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate, times
from fairlap.results.prices import Price
from fairlap.results.row import Row
from fairlap.results.scales.scaling_series import ScalingSeries
from fairlap.results.scenario_side import results_sides
from fairlap.results.slices.slices_of_run import Slices
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.scenarios.process_result import NOT_ITS_FIRST, ProcessResult

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


def rows_of_work(
    run: Run,
    run_id: str,
    found: WorkResult,
    baseline: str,
    price: Price | None,
    scaling: Sequence[ScalingSeries],
    slices: Slices,
) -> tuple[Row, ...]:
    """``baseline`` names the contestant to compare with; the fastest ranked one when empty."""
    return tuple(_row(run, run_id, found, result, baseline, price, scaling, slices) for result in found.contestants)


def _row(
    run: Run,
    run_id: str,
    work_result: WorkResult,
    result: ContestantResult,
    baseline: str,
    price: Price | None,
    scaling: Sequence[ScalingSeries],
    slices: Slices,
) -> Row:
    work = work_result.work
    scenario = run.plan.scenario(work)
    name = next(each for each in run.plan.contestants if each.text == result.contestant)
    machine, environment = fingerprints_of(run, result)
    latency = estimate(result.finished, lambda process: process.calls.p50_ns)
    energy = energy_of(result, work)
    cells: dict[str, Cell] = {
        "version": cell_or(
            next((process.version for process in result.processes if process.version), None),
            "it was never imported",
        ),
        "place": cell_or(
            _place(work_result, result),
            work_result.why_no_verdict or result.trouble or "it is not ranked",
        ),
        "judged": cell_or(result.judged, absence_reason(result) or result.trouble or "no process has this figure"),
        **latency_of(result, work, latency, device=run.plan.device),
        **feeding_of(result),
        **generation_of(result, work.batch),
        **roofline_of(
            result,
            roofs_under(run, work),
            work.in_precision(name.precision).precision,
            run.plan.device,
            latency,
            ranks=1 if work.scale is None else work.scale.ranks,
        ),
        **_phases(result, work),
        **compilation_of(run, work_result, result),
        **memory_of(result),
        **allocations_of(result),
        **smallest_memory_of(result, asked_for=run.plan.min_memory and work_result.conditions == run.plan.headline),
        **largest_batch_of(result, asked_for=run.plan.max_batch > 0 and work_result.conditions == run.plan.headline),
        **utilisation_of(result, threads=run.plan.threads_of(work), device=run.plan.device),
        **energy,
        **_cost(estimate(result.finished, lambda process: process.batch_ns(work.batch)), work, price),
        **errors_of(run.plan, result),
        **{name: cell for side in results_sides() for name, cell in side.cells(result, work, price).items()},
        **scaling_cells(scaling, result.contestant, work, work_result.conditions),
        **ranks_of(result, work, energy["energy_per_item_j"]),
        **_against(work_result, result, baseline, only_winner=run.plan.only_winner),
        "order_depends_on_data": order_depends_on_data(work_result.basis),
    }
    return Row(
        run=run_id,
        recorded_at=run.began_at,
        fairlap=run.fairlap,
        machine=machine,
        environment=environment,
        work_id=work.id,
        workload=work.model,
        mode=work.mode,
        precision=work.in_precision(name.precision).precision,
        ranked_precisions=list(work.precisions),
        batch=work.batch,
        threads=run.plan.threads_of(work),
        **scale_of(work),
        device=",".join(run.plan.devices_of(work)),
        data=run.plan.data,
        train_on="" if work.train_on is None else work.train_on.label,
        train_on_hash="" if work.train_on is None else work.train_on.hash,
        conditions=work_result.conditions,
        turns=_turns(result.processes),
        works_in_process=_works_in_process(run, result),
        data_seeds=sorted({process.data_seed for process in result.processes}),
        contestant=result.contestant,
        framework=name.framework or name.program,
        variant=name.variant,
        division="best" if name.best else "default",
        found_settings=next((each.found for each in run.searches if each.contestant == name.text), {}),
        origin=origin_of([] if name.program else name.options),
        route=next((process.route for process in result.processes if process.route), ""),
        settings=next((process.in_force for process in result.processes if process.in_force), {}),
        reported_by=next((each.in_force[REPORTED] for each in result.processes if REPORTED in each.in_force), ""),
        judged_by=result.judged_by.by,
        judged_unit=result.judged_by.unit,
        judged_better=result.judged_by.better,
        outcome=result.worst_outcome,
        code=result.code,
        message=result.trouble,
        modes=modes_of(result),
        stall_shares=stall_shares_of(result),
        recompile_stall_s=stalls_of(run, work_result, result),
        recompile_absent=without_stall(run, work_result, result),
        memory_bytes=memory_by_layer(result),
        memory_absent=memory_absent(result),
        memory_by_batch=memory_by_batch(result),
        time_per_item_by_batch_ns=time_per_item_by_batch_ns(result),
        energy_by_sensor_j=energy_by_sensor(result, work),
        **device_states_of(result),
        scores=scores_of(result),
        group_scores=slices.groups.get((result.contestant, work.id), {}),
        corrupted_scores=slices.corrupted.get((result.contestant, work.id), {}),
        **{
            "answers": agreement_of(run.plan, work, result),
            **{name: value for side in results_sides() for name, value in side.fields(result, work).items()},
        },
        scenario_figures=figures_of(scenario, result),
        scenario_absent=absent_of(scenario, result),
        blocks_kept=len(work_result.blocks.kept),
        blocks_dropped=len(work_result.blocks.dropped),
        processes_repeated=sum(process.repeats for process in result.processes),
        processes=len(result.processes),
        processes_finished=len(result.finished),
        warnings=_warnings(work_result, result),
        absent={column: each.absent for column, each in cells.items() if each.value is None},
        **{column: each.value for column, each in cells.items()},
    )


def _turns(processes: Sequence[ProcessResult]) -> str:
    """How they shared the machine, such as "in 10 rounds", or "one after the other: ..." where some were."""
    apart = next((each.in_turn_because for each in processes if each.in_turn_because), "")
    if apart:
        return f"one after the other: {apart}"
    rounds = sorted({len(each.rounds_ns) for each in processes if each.rounds_ns})
    if not rounds:
        return "none: no process was measured"
    dealt = "; its arrays moved in memory between them" if any(each.dealt for each in processes) else ""
    if len(rounds) > 1:
        return f"in {rounds[0]} to {rounds[-1]} rounds{dealt}"
    return f"in {quantity_text.count(rounds[0], 'round')}{dealt}"


def _works_in_process(run: Run, result: ContestantResult) -> int:
    started_in = {block.number: starts_processes(block) for block in run.plan.blocks}
    own = {started_in.get(each.block) for each in result.processes}
    same = [
        each for each in run.processes if each.contestant == result.contestant and started_in.get(each.block) in own
    ]
    return 1 + max((each.works_before for each in same), default=0)


def _phases(result: ContestantResult, work: Work) -> dict[str, Cell]:
    """Of processes that started alone, and for this work: others starting beside one slow each of its phases."""
    own = [each for each in result.finished if not each.works_before]
    why = absence_reason(result) or ("" if own else NOT_ITS_FIRST)
    alone = [each for each in own if each.started == "alone"]
    cold = [each for each in alone if each.caches == "cold"]
    warm = [each for each in alone if each.caches == "warm"]
    first = estimate(warm or cold, ProcessResult.time_to_first_s)
    no_phase = why or "it reported no such phase"
    compiles_nothing = why or "it compiles nothing ahead of its first call"
    compiled_cold = estimate(cold, ProcessResult.compile_s)
    was_used = any(each.works_before and each.caches == "cold" for each in result.finished)
    no_first = why or (NOT_ITS_FIRST if was_used else "its first process was lost")
    no_warm = "it compiles in less than a second, or had one process" if compiled_cold else compiles_nothing
    return {
        "import_s": cell_or(estimate(alone, partial(_phase, "import")), no_phase),
        "conversion_s": cell_or(estimate(own, lambda process: process.conversion_s), why or "it was not converted"),
        "build_s": cell_or(estimate(alone, partial(_phase, "build")), no_phase),
        "compile_cold_s": cell_or(compiled_cold, compiles_nothing if cold else no_first),
        "compile_warm_s": cell_or(estimate(warm, ProcessResult.compile_s), no_warm),
        "time_to_first_inference_s": Cell(None, "gradients were measured"),
        "time_to_first_gradient_s": Cell(None, "no gradients were measured"),
        time_to_first(work.mode): cell_or(first, no_phase),
    }


def _phase(name: str, process: ProcessResult) -> float | None:
    return process.phases_s.get(name)


def _cost(latency: Estimate | None, work: Work, price: Price | None) -> dict[str, Cell]:
    why = "no price was given" if price is None else "there is no latency" if latency is None else ""
    if price is None or latency is None:
        return {"cost_per_1000_items": Cell(None, why), "currency": Cell(None, why)}

    cost = times(latency, price.of_1000_items_per_ns(work.batch))
    return {"cost_per_1000_items": Cell(cost), "currency": Cell(price.currency)}


def _against(work_result: WorkResult, result: ContestantResult, baseline: str, *, only_winner: bool) -> dict[str, Cell]:
    if work_result.basis.is_refused:
        return _uncompared(None, work_result.why_no_verdict)
    ranked = [each.contestant for each in work_result.contestants if each.ranked]
    against = baseline or next(iter(ranked), "")
    if baseline and baseline not in ranked:
        return _uncompared(None, f"the baseline {baseline} is not ranked")
    if not against:
        return _uncompared(None, "no contestant is ranked")
    if against == result.contestant:
        return _uncompared(against, "it is the baseline")
    comparison = work_result.comparison(result.contestant, against)
    if comparison is None:
        not_asked = "only the fastest is compared with the others" if only_winner and result.ranked else ""
        return _uncompared(None, work_result.why_no_verdict or result.trouble or not_asked or "it is not ranked")
    interval, effect = comparison.interval, comparison.detectable_effect
    return {
        "baseline": Cell(against),
        "ratio": Cell(Estimate.bounded(comparison.ratio, interval.low, interval.high)),
        "verdict": Cell(comparison.verdict.value),
        "detectable_effect": cell_or(effect if np.isfinite(effect) else None, "the blocks show no spread"),
        "needed_blocks": _needed_blocks(comparison),
    }


def _needed_blocks(comparison: verdict.Comparison) -> Cell:
    if comparison.verdict is not verdict.Verdict.INCONCLUSIVE:
        return Cell(None, f"the verdict is {comparison.verdict.value}")
    return cell_or(verdict.needed_blocks(comparison), "the blocks show no spread")


def _uncompared(baseline: str | None, why: str) -> dict[str, Cell]:
    return {"baseline": cell_or(baseline, why)} | {
        key: Cell(None, why) for key in ("ratio", "verdict", "detectable_effect", "needed_blocks")
    }


def _place(work_result: WorkResult, result: ContestantResult) -> str | None:
    places = work_result.standing.places if work_result.standing else ()
    return next((place.label for place in places if place.contestant == result.contestant), None)


def _warnings(work_result: WorkResult, result: ContestantResult) -> list[Notice]:
    """Each once; what holds for all processes comes first."""
    for_all = (
        work_result.busy,
        work_result.continued,
        work_result.curves_apart,
        work_result.mixed,
        work_result.unknown_settings,
        *result.notices,
        result.scattered,
        *(notice for side in results_sides() for notice in side.notices(result)),
        straggler_notice(result),
        exchange_notice(result),
    )
    of_all = [warning for warning in for_all if warning is not None]
    return list(dict.fromkeys([*of_all, *(warning for process in result.processes for warning in process.warnings)]))
