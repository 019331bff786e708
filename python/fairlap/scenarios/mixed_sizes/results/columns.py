"""Columns of a race over a mix of sizes: time by size, stalls when sizes are first seen, and the time to be ready."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.work import Work
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.prices import Price
from fairlap.results.scenario_side import ResultsSide, all_absent
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.mixed_sizes.mix_messages import CallsOfSize
from fairlap.scenarios.mixed_sizes.results.column_definitions import CallAtSize, MixRow, ReadyInBlock
from fairlap.scenarios.process_result import ProcessResult

_NOT_ASKED = "its calls have one size; --shapes-from races several"
_NOT_COUNTED = "it compiles nothing, or does not count it"
_ONE_SIZE = "no size was seen after the one that it was prepared for"


class MixColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        why = _NOT_ASKED if work.mix is None else absence_reason(result)
        if why:
            return all_absent(MixRow, why)
        processes = result.finished
        compiled = [process.mix.graphs for process in processes if process.mix is not None]
        counted = [count for count in compiled if count is not None]
        return {
            "mix_stalls_s": cell_or(estimate(processes, _stalls_s), _ONE_SIZE),
            "mix_stall_share": cell_or(estimate(processes, _stall_share), _ONE_SIZE),
            "mix_compiled": cell_or(float(median(counted)) if counted else None, _NOT_COUNTED),
            "mix_ready_s": cell_or(estimate(_alone(processes), ready_s), "its processes did not start alone"),
        }

    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        mix = work.mix
        return {
            "mix": "" if mix is None else mix.text,
            "mix_by_size": [] if mix is None else _by_size(result, mix),
            "mix_by_block": [] if mix is None else _by_block(result),
        }


def ready_s(process: ProcessResult) -> float | None:
    """Without converting the model: a model of the framework's own would not be."""
    first_s, stalls_s = process.time_to_first_s(), _stalls_s(process)
    if first_s is None:
        return None
    return first_s - (process.conversion_s or 0.0) + (stalls_s or 0.0)


def _alone(processes: Sequence[ProcessResult]) -> list[ProcessResult]:
    alone = [each for each in processes if each.started == "alone"]
    return [each for each in alone if each.caches == "warm"] or alone


def _stalls_s(process: ProcessResult) -> float | None:
    return None if process.mix is None else process.mix.stalls_s


def _stall_share(process: ProcessResult) -> float | None:
    return None if process.mix is None else process.mix.stall_share


def _by_block(result: ContestantResult) -> list[ReadyInBlock]:
    found = []
    for process in result.finished:
        ready, call_ns = ready_s(process), None if process.mix is None else process.mix.call_ns
        if ready is not None and call_ns is not None:
            found.append(ReadyInBlock(process.block, ready, call_ns, process.caches))
    return found


def _by_size(result: ContestantResult, mix: Mix) -> list[CallAtSize]:
    found = []
    for place, share in enumerate(mix.shares):
        here = [_at(process, place) for process in result.finished]
        call_ns = estimate(result.finished, partial(_p50_ns, place))
        if call_ns is None:
            continue
        first = [each.first_s for each in here if each is not None and each.first_s is not None]
        compiled = [each.compiled for each in here if each is not None and each.compiled is not None]
        found.append(
            CallAtSize(
                mix.label(place),
                share,
                call_ns,
                float(median(first)) if first else None,
                float(median(compiled)) if compiled else None,
            )
        )
    return found


def _at(process: ProcessResult, place: int) -> CallsOfSize | None:
    return None if process.mix is None else process.mix.sizes[place]


def _p50_ns(place: int, process: ProcessResult) -> float | None:
    found = _at(process, place)
    return None if found is None else found.p50_ns
