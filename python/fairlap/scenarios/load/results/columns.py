"""Columns of a race of load: the largest rate under the bound, what it took at that rate, and the curve below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.request.work import Work
from fairlap.results.columns.generation import OF_GENERATION
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.prices import Price
from fairlap.results.row import Row
from fairlap.results.scenario_side import ResultsSide, all_absent
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.load.load_messages import LimitedBy, LoadTimes, LoadTrial, TokenTimes
from fairlap.scenarios.load.loadgen_messages import BY_THE_PATH, LoadGenResult
from fairlap.scenarios.load.results.column_definitions import LatencyAtRate, LoadRow
from fairlap.scenarios.load.results.instances import COST, NO_TRAFFIC, cost_of, instances_of, without_instances
from fairlap.scenarios.process_result import ProcessResult

_OF_TOKENS = (
    "first_token_at_largest_rate_p50_ns",
    "first_token_at_largest_rate_p99_ns",
    "output_token_at_largest_rate_p50_ns",
    "output_token_at_largest_rate_p99_ns",
    "tokens_at_largest_rate_per_s",
)
_MEDIAN = 0.5
_OF_LOADGEN = ("loadgen", "loadgen_latency_ns", "loadgen_rate_per_s")
_UNDER_LOAD = "requests came under load; the columns of load have their tokens"
_NOT_ASKED = "it was not raced under load; `fairlap load` does"
_NO_TRIAL = "the budget ended before the trial at this rate"
_KNEE = 2.0  # times the p99 at the lowest rate
_OF_FIXED_LENGTH = ("lone", "curve", "at_largest_rate")


class LoadColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        generates = bool(result.finished) and all(process.tokens_per_call for process in result.finished)
        without = OF_GENERATION if work.load is not None and generates else ()
        return load_of(result, work, price) | {name: Cell(None, _UNDER_LOAD) for name in without}

    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        return {"load": "" if work.load is None else work.load.text, "latency_by_rate": latency_by_rate(result)}

    def costs(self, row: Row, price: Price) -> dict[str, Cell]:
        return {name: cell for name, cell in cost_of(row.instances, price).items() if name == COST}

    def notices(self, result: ContestantResult) -> list[Notice]:
        found = bound_does_not_limit(result)
        return [] if found is None else [found]


def load_of(result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
    processes = result.finished
    why = "" if work.load is not None else _NOT_ASKED
    why = why or absence_reason(result)
    if why:
        return all_absent(LoadRow, why)
    if work.load is not None and not work.load.searches:
        no_search = f"LoadGen's scenario {work.load.scenario} searches for no rate"
        return all_absent(LoadRow, no_search) | _of_loadgen(processes)
    with_rate = [process for process in processes if _largest_rate(process) is not None]
    no_rate = "" if with_rate else "no process found a rate that meets the bound"
    at_rate = partial(_at_largest_rate, with_rate, no_rate or _NO_TRIAL)
    return {
        "largest_rate_per_s": cell_or(estimate(with_rate, _largest_rate), no_rate),
        "largest_rate_limited_by": Cell(_limits_text(_limits(processes))),
        "capacity_per_s": cell_or(estimate(processes, _capacity), "the budget ended before it was measured"),
        "latency_at_largest_rate_p50_ns": at_rate(lambda times: times.p50_ns),
        "latency_at_largest_rate_p90_ns": at_rate(lambda times: times.p90_ns),
        "latency_at_largest_rate_p99_ns": at_rate(lambda times: times.p99_ns),
        "issue_lateness_p99_ns": at_rate(lambda times: times.issue_lateness_p99_ns),
        "mean_batch_at_largest_rate": _mean_batch(with_rate, no_rate),
        **_tokens(with_rate, no_rate),
        "first_request_s": cell_or(
            estimate(processes, lambda process: process.phases_s.get("first_call")), "its worker reports no such phase"
        ),
        "knee_rate_per_s": _knee(latency_by_rate(result)),
        **_instances(work, with_rate, no_rate, price),
        **_of_loadgen(processes),
    }


def _instances(work: Work, processes: Sequence[ProcessResult], why: str, price: Price | None) -> dict[str, Cell]:
    traffic = None if work.load is None else work.load.traffic
    if traffic is None:
        return without_instances(NO_TRAFFIC)
    return instances_of(traffic, processes, _largest_rate, _response_s, price, why)


def _response_s(process: ProcessResult) -> float | None:
    trial = None if process.load is None else process.load.at_largest_rate
    mean_ns = None if trial is None or trial.times is None else trial.times.mean_ns
    return None if mean_ns is None else mean_ns / 1e9


def bound_does_not_limit(result: ContestantResult) -> Notice | None:
    """Warn when the capacity ended the search in some of its processes, counted as its column counts them."""
    limits = _limits(result.finished)
    at_capacity, searches = limits["capacity"], limits.total()
    if not at_capacity:
        return None
    text = "it meets the bound at every rate up to its capacity, which limits its rate"
    if at_capacity < searches:
        text += f" in {at_capacity} of {quantity_text.count(searches, 'process')} with a rate"
    return Notice("W_BOUND_DOES_NOT_LIMIT", text)


def _limits(processes: Sequence[ProcessResult]) -> Counter[LimitedBy]:
    """Count what ended the search, of the processes that found a rate; of all where none did."""
    searched = [process.load for process in processes if process.load is not None and process.load.limited_by]
    with_rate = [each for each in searched if each.largest_rate_per_s is not None]
    return Counter(each.limited_by for each in with_rate or searched)


def _limits_text(limits: Counter[LimitedBy]) -> str:
    """``bound``, or ``bound in 4 of 6 processes, capacity in 2`` where they differ."""
    (most, count), *others = ((limit.replace("_", " "), count) for limit, count in limits.most_common())
    if not others:
        return most
    first = f"{most} in {count} of {quantity_text.count(limits.total(), 'process')}"
    return ", ".join([first, *(f"{limit} in {count}" for limit, count in others)])


def _of_loadgen(processes: Sequence[ProcessResult]) -> dict[str, Cell]:
    """Of the processes in which it ran."""
    ran = [process for process in processes if process.load is not None and process.load.loadgen is not None]
    if not ran:
        given = (process.load.loadgen_absent for process in processes if process.load is not None)
        why = next((each for each in given if each), "the budget ended before it ran")
        return {name: Cell(None, why) for name in _OF_LOADGEN}
    found = [process.load.loadgen for process in ran if process.load is not None and process.load.loadgen is not None]
    unit = found[0].unit
    other = f"in {found[0].scenario}, LoadGen's figure is {'a latency' if unit == 's' else 'a rate'}"
    latency = estimate(ran, lambda process: _figure(process, 1e9)) if unit == "s" else None
    rate = estimate(ran, lambda process: _figure(process, 1.0)) if unit != "s" else None
    return {
        "loadgen": Cell(_loadgen_text(found)),
        "loadgen_latency_ns": cell_or(latency, other if unit != "s" else "LoadGen reported none"),
        "loadgen_rate_per_s": cell_or(rate, other if unit == "s" else "LoadGen reported none"),
    }


def _loadgen_text(found: Sequence[LoadGenResult]) -> str:
    """Format ``VALID in server``, or ``INVALID in server in 1 of 6 processes: bound``."""
    invalid = [each for each in found if not each.valid]
    if not invalid:
        return f"VALID in {found[0].scenario}{_tokens_text(found[0])}"
    reasons = dict.fromkeys(why.replace("_", " ") for each in invalid for why in each.why_invalid)
    often = "" if len(found) == 1 else f" in {len(invalid)} of {len(found)} processes"
    text = f"INVALID in {found[0].scenario}{often}{_tokens_text(invalid[0])}: {', '.join(reasons)}"
    return f"{text}{BY_THE_PATH}" if all(each.path_misses_bound for each in invalid) else text


def _tokens_text(found: LoadGenResult) -> str:
    """Name LoadGen's token metrics at the percentile, in its words: TTFT and TPOT."""
    at = f"{100 * (found.percentile or _MEDIAN):g}"
    parts = [
        f"{name} p{at} {quantity_text.duration(1e9 * times_s[at])}"
        for name, times_s in (("TTFT", found.first_token_s), ("TPOT", found.per_token_s))
        if at in times_s
    ]
    parts += [] if found.tokens_per_s is None else [f"{quantity_text.number(found.tokens_per_s)} tokens/s"]
    return f" ({', '.join(parts)})" if parts else ""


def _figure(process: ProcessResult, factor: float) -> float | None:
    loadgen = None if process.load is None else process.load.loadgen
    return None if loadgen is None or loadgen.figure is None else factor * loadgen.figure


def latency_by_rate(result: ContestantResult) -> list[LatencyAtRate]:
    """Of all trials of a fixed length, the smallest rate first. Others ended because they were decided."""
    found = [
        _point(process.block, trial, trial.times)
        for process in result.finished
        for trial in (process.load.trials if process.load else ())
        if trial.kind in _OF_FIXED_LENGTH and trial.times
    ]
    return sorted(found, key=lambda point: point.rate_per_s)


def _point(block: int, trial: LoadTrial, times: LoadTimes) -> LatencyAtRate:
    rate = 0.0 if trial.kind == "lone" or trial.rate_per_s is None else trial.rate_per_s
    first_token_ns = None if times.tokens is None else times.tokens.first_p99_ns
    return LatencyAtRate(block, rate, times.p50_ns, times.p90_ns, times.p99_ns, trial.requests, first_token_ns)


def _knee(points: Sequence[LatencyAtRate]) -> Cell:
    """Find the lowest rate at which the p99 is more than twice that of lone requests."""
    lone = [point.p99_ns for point in points if point.rate_per_s == 0]
    limit_ns = _KNEE * float(np.median(lone)) if lone else 0.0
    above = [point.rate_per_s for point in points if lone and point.rate_per_s and point.p99_ns > limit_ns]
    return cell_or(min(above, default=None), "up to the largest rate, the p99 stays below twice that of lone requests")


def _largest_rate(process: ProcessResult) -> float | None:
    return None if process.load is None else process.load.largest_rate_per_s


def _capacity(process: ProcessResult) -> float | None:
    return None if process.load is None else process.load.capacity_per_s


def _tokens(processes: Sequence[ProcessResult], no_rate: str) -> dict[str, Cell]:
    why = no_rate
    if not why and not all(process.tokens_per_call for process in processes):
        why = "the model does not answer token by token"

    def of_answers(read: Callable[[TokenTimes], float]) -> Cell:
        def of(times: LoadTimes) -> float | None:
            return None if times.tokens is None else read(times.tokens)

        return _at_largest_rate(processes, why or _NO_TRIAL, of)

    # Not those of the trial in a second: its random arrivals are more or fewer than its rate.
    per_s = None if why else estimate(processes, _tokens_per_s)
    cells = (
        of_answers(lambda tokens: tokens.first_p50_ns),
        of_answers(lambda tokens: tokens.first_p99_ns),
        of_answers(lambda tokens: tokens.per_token_p50_ns),
        of_answers(lambda tokens: tokens.per_token_p99_ns),
        cell_or(per_s, why),
    )
    return dict(zip(_OF_TOKENS, cells, strict=True))


def _tokens_per_s(process: ProcessResult) -> float | None:
    rate = _largest_rate(process)
    return None if rate is None else rate * process.tokens_per_call


def _at_largest_rate(processes: Sequence[ProcessResult], why: str, read: Callable[[LoadTimes], float | None]) -> Cell:
    def of(process: ProcessResult) -> float | None:
        trial = None if process.load is None else process.load.at_largest_rate
        return None if trial is None or trial.times is None else read(trial.times)

    return cell_or(estimate(processes, of), why)


def _mean_batch(processes: Sequence[ProcessResult], no_rate: str) -> Cell:
    trials = [process.load.at_largest_rate for process in processes if process.load is not None]
    batches = [trial.mean_batch for trial in trials if trial is not None]
    why = no_rate or _NO_TRIAL
    return cell_or(float(np.median(batches)) if batches else None, why)
