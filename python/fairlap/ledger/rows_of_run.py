"""A saved run as rows: one for every contestant on every work under each kind of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fairlap.ledger.energy_of_row import energy_by_sensor, energy_of
from fairlap.ledger.estimates import Told, bounded, estimate, told_or, why_not
from fairlap.ledger.feeding_of_row import feeding_of, stall_shares_of
from fairlap.ledger.fingerprints import fingerprints_of
from fairlap.ledger.memory_of_row import memory_absent, memory_by_layer, memory_of, smallest_memory_of
from fairlap.ledger.prices import Price
from fairlap.ledger.schema import Estimate, ModeOfProcesses, Row
from fairlap.race.laps import Lap
from fairlap.race.plan import Work
from fairlap.race.results import Contender, Heat, Results, results_of
from fairlap.race.saving import SavedRun

_NS_PER_S = 1e9
IS_THE_BASELINE = "it is the baseline"
_QUANTITIES = ("host_issue_ns", "device_span_ns", "kernel_sum_ns")


def rows_of_run(
    run: SavedRun, run_id: str, *, baseline: str = "", price: Price | None = None, results: Results | None = None
) -> list[Row]:
    """``baseline`` names who the others are held against; without one it is the fastest that is ranked."""
    shown = results or results_of(run.plan, run.laps)
    works = {work.label: work for work in run.plan.works}
    return [
        _row(run, run_id, works[heat.work], heat, row, baseline, price) for heat in shown.heats for row in heat.rows
    ]


def _row(
    run: SavedRun, run_id: str, work: Work, heat: Heat, contender: Contender, baseline: str, price: Price | None
) -> Row:
    name = next(each for each in run.plan.contestants if each.text == contender.contestant)
    machine, environment = fingerprints_of(run, contender)
    latency = estimate(contender.finished, lambda lap: _headline(lap).p50_ns)
    told: dict[str, Told] = {
        "version": told_or(next((lap.version for lap in contender.laps if lap.version), None), "it was never imported"),
        "place": told_or(_place(heat, contender), heat.why_no_verdict or contender.trouble or "it is not ranked"),
        **_latencies(contender, work, latency),
        **feeding_of(contender),
        **_phases(contender, work),
        **memory_of(contender),
        **smallest_memory_of(contender, asked_for=run.plan.min_memory and heat.conditions == run.plan.headline),
        **energy_of(contender, work),
        **_cost(estimate(contender.finished, lambda lap: lap.headline_ns), work, price),
        **_errors(contender),
        "accuracy": Told(None, "the model has no dataset"),
        **_against(heat, contender, baseline),
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
        conditions=heat.conditions,
        contestant=contender.contestant,
        framework=name.framework or name.program,
        variant=name.variant,
        settings=next((lap.in_force for lap in contender.laps if lap.in_force), {}),
        outcome=contender.worst_outcome,
        message=contender.trouble,
        modes=_modes(contender),
        stall_shares=stall_shares_of(contender),
        memory_bytes=memory_by_layer(contender),
        memory_absent=memory_absent(contender),
        energy_by_sensor_j=energy_by_sensor(contender, work),
        blocks_kept=len(heat.blocks.kept),
        blocks_dropped=len(heat.blocks.dropped),
        processes=len(contender.laps),
        processes_finished=len(contender.finished),
        warnings=_warnings(heat, contender),
        absent={column: each.why for column, each in told.items() if each.value is None},
        **{column: each.value for column, each in told.items()},
    )


def _headline(lap: Lap) -> Any:
    return next(iter(lap.figures.values()))


def _latencies(contender: Contender, work: Work, latency: Estimate | None) -> dict[str, Told]:
    laps, why = contender.finished, why_not(contender)
    first = _headline(laps[0]) if laps else None
    told = {
        "latency_p50_ns": told_or(latency, why),
        "latency_p90_ns": told_or(estimate(laps, lambda lap: _headline(lap).p90_ns), why),
        "latency_p99_ns": told_or(estimate(laps, lambda lap: _headline(lap).p99_ns), why),
        "method": told_or(first and first.method, why),
        "resolution_ns": told_or(first and first.resolution_ns, why),
        "throughput_per_s": told_or(estimate(laps, lambda lap: work.batch / lap.headline_ns * _NS_PER_S), why),
    }
    for name in _QUANTITIES:
        told[name] = told_or(estimate(laps, partial(_median_of, name)), "the method does not give it" if laps else why)
    return told


def _median_of(quantity: str, lap: Lap) -> float | None:
    figure = lap.figures.get(quantity)
    return None if figure is None else figure.p50_ns


def _phases(contender: Contender, work: Work) -> dict[str, Told]:
    laps, why = contender.finished, why_not(contender)
    first = estimate(laps, Lap.time_to_first_s)
    gradients = work.mode == "grad"
    return {
        "import_s": told_or(estimate(laps, partial(_phase, "import")), why or "it told of no such phase"),
        "build_s": told_or(estimate(laps, partial(_phase, "build")), why or "it told of no such phase"),
        "compile_s": told_or(estimate(laps, Lap.compiling_s), why or "it compiles nothing ahead of its first call"),
        "time_to_first_inference_s": Told(None, "gradients were measured") if gradients else told_or(first, why),
        "time_to_first_gradient_s": told_or(first, why) if gradients else Told(None, "no gradients were measured"),
    }


def _phase(name: str, lap: Lap) -> float | None:
    return lap.phases_s.get(name)


def _cost(latency: Estimate | None, work: Work, price: Price | None) -> dict[str, Told]:
    why = "no price was given" if price is None else "there is no latency" if latency is None else ""
    if price is None or latency is None:
        return {"cost_per_1000_items": Told(None, why), "currency": Told(None, why)}

    def of(latency_ns: float | None) -> float | None:
        return None if latency_ns is None else price.of_seconds(1000 / work.batch * latency_ns / _NS_PER_S)

    cost = Estimate(price.of_seconds(1000 / work.batch * latency.value / _NS_PER_S), of(latency.low), of(latency.high))
    return {"cost_per_1000_items": Told(cost), "currency": Told(price.currency)}


def _errors(contender: Contender) -> dict[str, Told]:
    errors = [error for lap in contender.laps for error in lap.errors]
    why = "" if errors else why_not(contender) or "no answer was checked"
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


def _against(heat: Heat, contender: Contender, baseline: str) -> dict[str, Told]:
    name = contender.contestant
    ranked = [row.contestant for row in heat.rows if row.ranked]
    if baseline and baseline not in ranked:
        why = f"the baseline {baseline} is not ranked"
    elif not ranked:
        why = "nobody is ranked"
    elif (held_against := baseline or ranked[0]) == name:
        why = IS_THE_BASELINE
    else:
        both = {name, held_against}
        found = next((each for each in heat.comparisons if {each.a, each.b} == both), None)
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
        why = heat.why_no_verdict or contender.trouble or "it is not ranked"
    return {key: Told(None, why) for key in ("baseline", "ratio", "verdict", "detectable_effect")}


def _place(heat: Heat, contender: Contender) -> str | None:
    places = heat.standing.places if heat.standing else ()
    return next((place.label for place in places if place.contestant == contender.contestant), None)


def _modes(contender: Contender) -> list[ModeOfProcesses]:
    if contender.figure is None or not contender.figure.modes.several:
        return []
    return [ModeOfProcesses(mode.value, mode.share) for mode in contender.figure.modes.modes]


def _warnings(heat: Heat, contender: Contender) -> list[str]:
    """Each once, what held for all contestants first."""
    own = (text for lap in contender.laps for text in lap.warnings)
    return list(dict.fromkeys([heat.busy, *own] if heat.busy else own))
