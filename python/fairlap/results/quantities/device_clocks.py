"""Times on a GPU checked by its cycles: a difference that the clock made is not claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from fairlap import verdict
from fairlap.scenarios.process_result import ProcessResult

Figures = Mapping[str, Sequence[float]]


def clocks_mhz(
    quantity: str,
    values: Mapping[str, Sequence[float | None]],
    processes_by_contestant: Mapping[str, Sequence[ProcessResult]],
) -> dict[str, list[float]]:
    """Read the clock of each process in the blocks that are compared; nothing where one of them is not known."""
    whole = [None not in block for block in zip(*values.values(), strict=True)]
    found: dict[str, list[float]] = {}
    for name in values:
        processes = [own for own, same in zip(processes_by_contestant[name], whole, strict=True) if same]
        known = [mhz for own in processes if (mhz := own.timings[quantity].sm_mhz) is not None]
        if len(known) < len(processes):
            return {}
        found[name] = known
    return found


def unless_cycles_disagree(
    by_time: tuple[verdict.Comparison, ...], figures: Figures, mhz: Figures, metric: verdict.Metric, level: float
) -> tuple[verdict.Comparison, ...]:
    """Make inconclusive what cycles do not bear out, where all clocks are known."""
    if not mhz:
        return by_time
    cycles = {
        name: verdict.Figures(metric.name, [time * clock for time, clock in zip(own, mhz[name], strict=True)])
        for name, own in figures.items()
    }
    table = verdict.block_table(cycles, metric=metric, workload=by_time[0].workload)
    usual = {name: float(median(own)) for name, own in mhz.items()}
    return verdict.unless_cycles_disagree(by_time, verdict.judge([table], alpha=level), usual)
