"""Columns of a load on servers that stream: rates of tokens, and what of other columns is not theirs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean, median
from typing import Any

from fairlap.request.work import Work
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.prices import Price
from fairlap.results.scenario_side import ResultsSide
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN
from fairlap.scenarios.load.results.instances import instances_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.results.column_definitions import LoadClient
from fairlap.scenarios.streams.scenario import FEWEST_FOR_P90, FEWEST_FOR_P99, ONE_EVENT, TOO_FEW
from fairlap.scenarios.streams.streams_found import ClientFound, Percentiles, RequestStamps

_NO_VERSION = "its server is not asked for one"
_NOT_SEEN = "what a server holds is not seen"


class StreamColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        if work.streams is None:
            return {}
        why = absence_reason(result)
        processes = result.finished
        found = {
            **({} if any(each.version for each in processes) else {"version": Cell(None, _NO_VERSION)}),
            "zero_weights": Cell(None, _NOT_SEEN),
            "tokens_per_s": cell_or(estimate(processes, _tokens_per_s), why),
            "tokens_per_prompt_per_s": cell_or(estimate(processes, _tokens_per_s_per_user), why or ONE_EVENT),
        }
        fewest = min((each.timings["wall_ns"].samples for each in processes), default=0)
        if processes and fewest < FEWEST_FOR_P90:
            found["latency_p90_ns"] = Cell(None, TOO_FEW.format(FEWEST_FOR_P90))
        if processes and fewest < FEWEST_FOR_P99:
            found["latency_p99_ns"] = Cell(None, TOO_FEW.format(FEWEST_FOR_P99))
        if not work.streams.searches:
            return found
        traffic = work.streams.traffic
        largest_rate = partial(_searched, "largest_rate_per_s")
        of_traffic = {} if traffic is None else instances_of(traffic, processes, largest_rate, _response_s, price, why)
        return found | _of_search(processes, why) | of_traffic

    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        return {"load_clients": _load_clients(result.processes)}


def _load_clients(processes: Sequence[ProcessResult]) -> list[LoadClient]:
    """Also of blocks in which another client was lost."""
    turns: dict[str, list[ClientFound]] = {}
    for process in processes:
        for each in () if process.streams is None else process.streams.clients:
            turns.setdefault(each.name, []).append(each)
    return [
        LoadClient(
            name=name,
            requests=sum(each.requests for each in own),
            core_share=median(each.client_share for each in own),
            adds_to_first_token_ns=_added_ns(own, "first_token"),
            adds_to_answer_ns=_added_ns(own, "whole_answer"),
            clock_offset_ns=own[-1].clock_offset_ns,
            clock_uncertainty_ns=max(each.clock_uncertainty_ns for each in own),
        )
        for name, own in turns.items()
    ]


def _added_ns(turns: Sequence[ClientFound], part: str) -> float | None:
    found: list[Percentiles | None] = [None if each.floor is None else getattr(each.floor, part) for each in turns]
    known = [each.p50_ns for each in found if each is not None]
    return median(known) if known else None


def _of_search(processes: Sequence[ProcessResult], why: str) -> dict[str, Cell]:
    """Columns that a load on models has as well."""
    limits = sorted({each.streams.search.limited_by for each in processes if each.streams and each.streams.search})
    return {
        "largest_rate_per_s": cell_or(estimate(processes, partial(_searched, "largest_rate_per_s")), why),
        "capacity_per_s": cell_or(estimate(processes, partial(_searched, "capacity_per_s")), why or "no trial ended"),
        "largest_rate_limited_by": cell_or(" or ".join(limits).replace("_", " ") or None, why or "no search ended"),
    }


def _response_s(process: ProcessResult) -> float | None:
    """Compute the mean of the whole answers at the largest rate, from when each was due."""
    stamps = process.streams.requests if process.streams is not None else RequestStamps()
    both = zip(stamps.from_ns, stamps.last_ns, strict=True)
    known = [last_ns - from_ns for from_ns, last_ns in both if from_ns is not None and last_ns is not None]
    return fmean(known) / 1e9 if known else None


def _searched(name: str, process: ProcessResult) -> float | None:
    search = None if process.streams is None else process.streams.search
    found: float | None = None if search is None else getattr(search, name)
    return found


def _tokens_per_s(process: ProcessResult) -> float | None:
    figures = None if process.streams is None else process.streams.figures
    return None if figures is None else figures.tokens_per_s


def _tokens_per_s_per_user(process: ProcessResult) -> float | None:
    each = process.timings.get(TIME_PER_OUTPUT_TOKEN)
    return None if each is None else 1e9 / each.p50_ns
