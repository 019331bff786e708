"""Which quantity of a race decides about a change: the time, or what it takes of the processor or of memory."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap import verdict
from fairlap.errors import FairlapError
from fairlap.judgement.judge_request import Quantity
from fairlap.race.counted_blocks import WorkBlocks
from fairlap.results.other_quantities import CPU_TIME, PEAK_MEMORY, figure_of
from fairlap.scenarios.process_result import ProcessResult

_METRICS: Mapping[Quantity, verdict.Metric] = {"cpu_time": CPU_TIME, "memory_peak": PEAK_MEMORY}


class QuantityAbsent(FairlapError):
    """A process has no figure of the quantity that is to decide."""

    code = "E_QUANTITY"


def table_by(quantity: Quantity, found: WorkBlocks) -> verdict.BlockTable | None:
    """Make the table of what decides, by block; None where the race has none."""
    if quantity == "wall" or found.table is None:
        return found.table
    metric = _METRICS[quantity]
    figures = {
        side: verdict.Figures(metric.name, [_figure(metric, found, each) for each in own])
        for side, own in found.compared.items()
    }
    return verdict.block_table(figures, metric=metric, workload=found.work.id)


def counts_on_a_busy_machine(quantity: Quantity) -> bool:
    """Whether it is the same however much of the processors others take."""
    return quantity == "memory_peak"


def _figure(metric: verdict.Metric, found: WorkBlocks, process: ProcessResult) -> float:
    value = figure_of(metric, process, found.work)
    if value is None:
        why = process.memory.absent.get("peak", "") if metric == PEAK_MEMORY else process.elsewhere
        raise QuantityAbsent(
            f"the {metric.name} of {process.contestant} is unknown: {why or 'this system does not report it'}; "
            "judge it by another --quantity"
        )
    return value
