"""Which quantity of a race decides about a change: the time, or what it takes of the processor or of memory."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap import verdict
from fairlap.errors import FairlapError
from fairlap.judgement.judge_request import SearchedQuantity
from fairlap.race.counted_blocks import WorkBlocks
from fairlap.results.quantities.other_quantities import CPU_TIME, PEAK_MEMORY, TIME_TO_FIRST_INFERENCE, figure_of
from fairlap.scenarios.process_result import ProcessResult

_METRICS: Mapping[SearchedQuantity, verdict.Metric] = {
    "cpu_time": CPU_TIME,
    "memory_peak": PEAK_MEMORY,
    "time_to_first": TIME_TO_FIRST_INFERENCE,
    "compile_time": verdict.COMPILE_TIME,
}


class QuantityAbsent(FairlapError):
    """A process has no figure of the quantity that is to decide."""

    code = "E_QUANTITY"


def table_by(quantity: SearchedQuantity, found: WorkBlocks) -> verdict.BlockTable | None:
    """Make the table of what decides, by block; None where the race has none."""
    if quantity == "wall" or found.table is None:
        return found.table
    metric = _METRICS[quantity]
    figures = {
        side: verdict.Figures(metric.name, [_figure(metric, found, each) for each in own])
        for side, own in found.compared.items()
    }
    return verdict.block_table(figures, metric=metric, workload=found.work.id)


def counts_on_a_busy_machine(quantity: SearchedQuantity) -> bool:
    """Whether it is the same however much of the processors others take."""
    return quantity == "memory_peak"


def _figure(metric: verdict.Metric, found: WorkBlocks, process: ProcessResult) -> float:
    value = figure_of(metric, process, found.work)
    if value is None:
        why = process.elsewhere
        if metric == PEAK_MEMORY:
            why = process.memory.absent.get("peak", "")
        elif metric == verdict.COMPILE_TIME:
            why = "it compiles nothing before its first call"
        raise QuantityAbsent(
            f"the {metric.name} of {process.contestant} is unknown: {why or 'this system does not report it'}; "
            "judge it by another --quantity"
        )
    return value
