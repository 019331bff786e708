"""What is printed below a contestant's line: what it took besides time, and what is to be known of its figure."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.render.scenario_figures import scenario_figures_text
from fairlap.render.scenario_side import render_sides, summaries
from fairlap.render.text.generation import generation_lines
from fairlap.render.text.scores import scores_text
from fairlap.request.names import CALLABLES, COMMAND
from fairlap.request.work_title import NOT_COMPARED
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.columns.feeding import UNKNOWN_CAUSE, WORK
from fairlap.results.row import Row
from fairlap.results.work_result import PAGE_FAULTS, ContestantResult
from fairlap.verdict.figures.modes import REMEDIES

_NS_PER_FAULT = 500.0  # about what the kernel takes to hand a page out; clearing it comes on top
_SHARE_WORTH_A_REMARK = 0.02
_LEAST_BOUND = 0.25  # of a roof: what `triad`, which nothing but memory bounds, reaches on busy machines at least
OF_A_CONTESTANT = ("W_NO_RATE", "W_SCATTERED_PROCESSES", "W_BOUND_DOES_NOT_LIMIT", "W_STEPS_DIFFER")
"""Codes of warnings about all of its processes; those that its scenario rules of it are shown as well."""
_SHOWN = ("W_BUDGET_IN_TRAINING", "W_CHECKPOINT", *OF_A_CONTESTANT)
_SHOWN_ONCE = ("W_BUDGET_IN_LOAD", "W_LATE_REQUESTS", "W_TIMES_ITSELF", "W_TRAINING_SUMS")  # of all processes
OF_THE_WORK = (
    *("W_NO_REFERENCE", "W_FILE_PRECISION", "W_WEAK_PROOF", "W_ILL_CONDITIONED", "W_OTHER_TOKENS"),
    *("W_TOKENS_ALONE", "W_SCORE_AT_START"),
    *("W_REFERENCE_TYPE", "W_ARGUMENTS_RESTORED", "W_ONE_SIZE", "W_LOOSE_CHECK", "W_TRAINING_UNSEEN"),
)
"""Codes of warnings about what is computed and how its answers are proven, whichever contestant computes it."""


def contestant_lines(result: ContestantResult, row: Row) -> list[str]:
    return [*_resources(result, row), *_remarks(result, row)]


def codes_of_a_contestant(result: ContestantResult) -> set[str]:
    """Collect the codes of warnings that are shown with a contestant, whichever process they are from."""
    return {*OF_A_CONTESTANT, *(each.code for each in result.notices)}


def warnings_of_the_work(rows: Sequence[Row]) -> list[str]:
    """Each once, with the contestants whose processes have it, where there are several."""
    names: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for each in row.warnings:
            if each.code in OF_THE_WORK:
                names.setdefault((each.code, each.text), []).append(row.contestant)
    found = []
    for (code, text), whose in names.items():
        of = f" ({', '.join(dict.fromkeys(whose))})" if len(rows) > 1 else ""
        found.append(f"! {text}{of} [{code}]")
    return found


def causes_of_modes(row: ContestantResult) -> list[str]:
    found = []
    for cause in row.causes:
        remedy = f"; {cause.remedy}" if cause.remedy else ""
        found.append(f"its modes follow {cause.covariate} ({', '.join(cause.typical)}){remedy}")
    return found


def _resources(result: ContestantResult, row: Row) -> list[str]:
    """List what it took besides time, without what was not asked for or could not be read."""
    return [
        *_bound(row),
        *_reported(result, row),
        *_of_runs(row),
        *_route(row),
        *_answers(result, row),
        *_scores(row),
        *_summaries(row),
        *generation_lines(row),
        *(line for side in render_sides() for line in side.lines(row)),
        *filter(None, [scenario_figures_text(row)]),
        *_on_device(result, row),
        *_feeding(row),
        *_allocations(row),
        *_smallest_memory(row),
        *_largest_batch(result, row),
        *_energy(result, row),
    ]


def _reported(result: ContestantResult, row: Row) -> list[str]:
    """Which report its time is from, and how long the run took that made it."""
    if row.reported_ns is None or row.latency_p50_ns is None:
        return []
    return [f"{result.finished[0].headline.method}; a run takes {quantity_text.duration(row.latency_p50_ns.value)}"]


def _of_runs(row: Row) -> list[str]:
    """Report what a run of a program needs besides time."""
    if row.framework != COMMAND or row.peak_memory_bytes is None:
        return []
    cpu = "" if row.cpu_time_ns is None else f", {quantity_text.duration(row.cpu_time_ns.value)} of CPU time"
    return [f"a run holds {quantity_text.size(row.peak_memory_bytes.value)} at most{cpu}"]


def _bound(row: Row) -> list[str]:
    """Report what bounds it, or how much of its time the roofs and an empty call explain, where that is known."""
    if row.roof_share is None:
        return []
    if row.bound is None:
        return [f"unknown what bounds it: {row.absent['bound']}"]
    if row.bound == "overhead-bound" and row.overhead_ns is not None:
        return [f"overhead-bound: an empty call takes {quantity_text.duration(row.overhead_ns)}"]
    by = "" if row.roof_instructions is None else f" ({row.roof_instructions})"
    of_roof = f"{quantity_text.share(row.roof_share)} of the {row.roof} roof{by}"
    return [of_roof if row.roof_share < _LEAST_BOUND else f"{row.bound}: {of_roof}"]


def _on_device(result: ContestantResult, row: Row) -> list[str]:
    """How long a GPU worked, which is less than its user waits; or why that is not known."""
    if row.device == "cpu" or not result.finished:  # what kept it from finishing is in its line
        return []
    times = {"device span": row.device_span_ns, "context span": row.context_span_ns, "kernels": row.kernel_sum_ns}
    known = [f"{name} {quantity_text.duration(time.value)}" for name, time in times.items() if time is not None]
    lines = [f"on {row.device}: {', '.join(known)}"] if known else []
    return lines if row.device_span_ns is not None else [*lines, f"no device span: {row.absent['device_span_ns']}"]


def _route(row: Row) -> list[str]:
    """How a user's model got here, and how exact it is there."""
    if not row.route:
        return []
    error = [] if row.error_relative is None else [f"error {quantity_text.relative_error(row.error_relative)}"]
    took = [] if row.conversion_s is None else [f"converted in {quantity_text.seconds(row.conversion_s.value)}"]
    return [", ".join([row.route, *error, *took])]


def _answers(result: ContestantResult, row: Row) -> list[str]:
    """Of a callable, what its answers agree with."""
    if row.framework != CALLABLES or not result.finished or row.answers == NOT_COMPARED:
        return []
    error = [] if row.error_relative is None else [f"error {quantity_text.relative_error(row.error_relative)}"]
    return [", ".join([f"answers {row.answers}", *error])]


def _scores(row: Row) -> list[str]:
    if not row.scores:
        return []
    items = next(iter(row.scores.values())).items
    return [f"{', '.join(scores_text(row))} on {quantity_text.count(items, 'item')}"]


def _summaries(row: Row) -> list[str]:
    return [f"{each.head}: {text}" for each in summaries() if (text := each.text(row))]


def _feeding(row: Row) -> list[str]:
    rate, waited = row.pipeline_throughput_per_s, row.waited_share
    if rate is None or waited is None:
        return []
    shares = {name: share for name, share in row.stall_shares.items() if name not in (WORK, UNKNOWN_CAUSE)}
    causes = ", ".join(f"{name} {quantity_text.share(share)}" for name, share in shares.items())
    details = f" ({causes})" if causes else ""
    pipeline = row.settings.get("feed", "a pipeline")
    items, share = quantity_text.number(rate.value), quantity_text.share(waited.value)
    hidden = row.copies_hidden_share
    copies = "" if hidden is None else f", {quantity_text.share(hidden.value)} of copying hidden behind work"
    return [f"fed by {pipeline}: {items} items/s, waited {share} of the time{details}{copies}"]


def _allocations(row: Row) -> list[str]:
    number, size = row.allocations, row.allocated_bytes
    if number is None or size is None:
        return []
    return [
        f"allocates {quantity_text.size(size.value)} in {quantity_text.count(round(number.value), 'piece')} per call"
    ]


def _smallest_memory(row: Row) -> list[str]:
    if row.min_memory_tries is None:
        return []
    attempts = quantity_text.count(row.min_memory_tries, "attempt")
    if row.min_memory_bytes is None or row.min_memory_resolution_bytes is None:
        return [f"smallest memory unknown after {attempts}: {row.absent['min_memory_bytes']}"]
    size, resolution = (quantity_text.size(each) for each in (row.min_memory_bytes, row.min_memory_resolution_bytes))
    return [f"runs in {size} ({row.min_memory_limit}; within {resolution}, {attempts})"]


def _largest_batch(result: ContestantResult, row: Row) -> list[str]:
    found = result.largest_batch
    if found is None:
        return []
    attempts = quantity_text.count(len(found.tries), "attempt")
    if row.largest_batch is None:
        return [f"no largest batch after {attempts}: {row.absent['largest_batch']}"]
    peak = row.memory_by_batch.get(str(row.largest_batch))
    held = "" if peak is None else f" in {quantity_text.size(peak)}"
    ended = {"out_of_memory": "memory", "limit": "the largest to try"}.get(found.ended_by, found.ended_by)
    within = f"within {found.resolution:,}, " if found.ended_by in ("out_of_memory", "refused") else ""
    return [f"largest batch {row.largest_batch:,}{held} ({within}ended by {ended}, {attempts})"]


def _energy(result: ContestantResult, row: Row) -> list[str]:
    if not any(process.energy for process in result.finished):
        return []
    if row.energy_per_item_j is None or row.mean_power_w is None:
        return [f"energy per item: {row.absent['energy_per_item_j']}"]
    idle = f"idle {_quantity(row.idle_power_w, 'W')}" if row.idle_power_w else row.absent["idle_power_w"]
    energy, power = _quantity(row.energy_per_item_j, "J"), _quantity(row.mean_power_w, "W")
    return [f"energy {energy} per item, {power} while measured ({idle})"]


def _quantity(estimate: Estimate, unit: str) -> str:
    return quantity_text.quantity(estimate.value, unit, estimate.low, estimate.high)


def _remarks(result: ContestantResult, row: Row) -> list[str]:
    if not result.finished:
        return []
    remarks = []
    if result.trouble and row.judged is not None:  # else its line is the trouble
        remarks.append(f"! {result.trouble_with_code}")
    first = {each.code: each for each in reversed(row.warnings) if each.code in _SHOWN_ONCE}
    codes = (*_SHOWN, *codes_of_a_contestant(result))
    shown = [*(each for each in row.warnings if each.code in codes), *first.values()]
    remarks += [f"! {each.text} [{each.code}]" for each in shown]
    faults = result.median_of(PAGE_FAULTS)
    if faults is not None and faults * _NS_PER_FAULT > _SHARE_WORTH_A_REMARK * result.call_ns:
        each = quantity_text.count(round(faults), "page fault")
        remarks.append(f"! {each} per call; {REMEDIES['page faults per call']} [W_PAGE_FAULTS]")
    return [*remarks, *(f"! {text} [W_MODES]" for text in causes_of_modes(result))]
