"""The columns of a contestant that runs as ranks: what their exchange costs, and which rank the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, median_low

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.request.work import Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate, times
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult

_COLUMNS = (
    "exchange_ns",
    "exchange_share",
    "straggler",
    "slowest_rank_excess",
    "largest_rank_memory_bytes",
    "energy_per_item_and_rank_j",
)
_ONE_PROCESS = "it is one process"
_NOT_TAKEN = "no steps were taken alone"
_FEWEST_RANKS = 2


def ranks_of(result: ContestantResult, work: Work, energy: Cell) -> dict[str, Cell]:
    """``energy`` is that of an item, for all ranks together."""
    ranks = 1 if work.scale is None else work.scale.ranks
    why = _ONE_PROCESS if ranks < _FEWEST_RANKS else absence_reason(result)
    if why:
        return dict.fromkeys(_COLUMNS, Cell(None, why))
    not_stepped = _why_not_stepped(result.finished)
    slowest = _slowest(result.finished)
    return {
        "exchange_ns": cell_or(_over_blocks([exchange_ns(each) for each in result.finished]), not_stepped),
        "exchange_share": cell_or(_over_blocks([_exchange_share(each) for each in result.finished]), not_stepped),
        "straggler": _straggler(result.finished, slowest, not_stepped),
        "slowest_rank_excess": cell_or(None if slowest is None else _shown(slowest.excess), not_stepped),
        "largest_rank_memory_bytes": cell_or(_memory(result.finished), "the ranks did not report their memory"),
        "energy_per_item_and_rank_j": _energy(ranks, energy),
    }


def straggler_notice(result: ContestantResult) -> Notice | None:
    slowest = _slowest(result.finished)
    if slowest is None or not slowest.is_one:
        return None
    low, high = (quantity_text.share(each) for each in (slowest.excess.low, slowest.excess.high))
    text = (
        f"{_named(result.finished, slowest.rank)} takes {quantity_text.share(slowest.excess.value)} [{low}, {high}] "
        "longer than the others for its part of a step, and they wait for it"
    )
    return Notice("W_STRAGGLER", text)


def exchange_notice(result: ContestantResult) -> Notice | None:
    """Ranks may wait for each other longer in one stretch of steps than in the next, so the share is not one number."""
    ratios = [_over_measured(each) for each in result.finished]
    known = [each for each in ratios if each is not None]
    if not known or len(known) < len(ratios):
        return None
    ratio = verdict.difference(np.array(known))
    apart = 1 + verdict.WORTH_A_WARNING
    if 1 / apart < ratio.value < apart or ratio.low <= 1 <= ratio.high:
        return None
    value, low, high = map(quantity_text.number, (ratio.value, ratio.low, ratio.high))
    text = (
        f"in turns with steps alone, its steps took {value} [{low}, {high}] times as long as in the measurement: "
        "exchange_ns and exchange_share are those of the turns, not of the measured step"
    )
    return Notice("W_EXCHANGE_UNSTEADY", text)


def _over_measured(process: ProcessResult) -> float | None:
    """How many times as long steps of all ranks took in turns with steps alone as in the measurement."""
    together, measured = _together_ns(process), process.timings.get("wall_ns")
    if together is None or measured is None or not measured.p50_ns > 0:
        return None
    return together / measured.p50_ns


def exchange_ns(process: ProcessResult) -> float | None:
    """Compute what exchanging adds to a step: the step of all together, less that of the slowest rank alone.

    It may be below 0 by noise.
    """
    together, alone = _together_ns(process), _alone_ns(process)
    return None if together is None or not alone else together - max(alone)


def _exchange_share(process: ProcessResult) -> float | None:
    exchange, together = exchange_ns(process), _together_ns(process)
    return None if exchange is None or not together else exchange / together


def _together_ns(process: ProcessResult) -> float | None:
    turns = () if process.ranks is None else process.ranks.stepped.together_ns
    return median(turns) if turns else None


def _alone_ns(process: ProcessResult) -> list[float]:
    """By rank, the median of its turns."""
    ranks = () if process.ranks is None else process.ranks.stepped.alone_ns
    return [median(turns) for turns in ranks] if ranks and all(ranks) else []


def _why_not_stepped(processes: Sequence[ProcessResult]) -> str:
    reasons = (process.ranks.stepped.why for process in processes if process.ranks is not None)
    return next(filter(None, reasons), _NOT_TAKEN)


def _slowest(processes: Sequence[ProcessResult]) -> verdict.Straggler | None:
    alone = [_alone_ns(process) for process in processes]
    counts = {len(each) for each in alone}
    if len(counts) != 1 or min(counts) < _FEWEST_RANKS or min(map(min, alone)) <= 0:
        return None
    return verdict.slowest_rank(np.array(alone))


def _straggler(processes: Sequence[ProcessResult], slowest: verdict.Straggler | None, why: str) -> Cell:
    if slowest is None:
        return Cell(None, why)
    if slowest.is_one:
        return Cell(_named(processes, slowest.rank))
    worth = quantity_text.share(verdict.WORTH_A_WARNING)
    return Cell(None, f"no rank is shown to be slower than the others by {worth} or more")


def _named(processes: Sequence[ProcessResult], rank: int) -> str:
    """With its host, where it has the same one in all processes and others have another."""
    hosts = [process.ranks.hosts for process in processes if process.ranks is not None]
    same = len(set(hosts)) == 1 and len(set(hosts[0])) > 1 and rank < len(hosts[0])
    return f"rank {rank} on {hosts[0][rank]}" if same else f"rank {rank}"


def _over_blocks(values: Sequence[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return _shown(verdict.difference(np.array(known)))


def _shown(found: verdict.Bounded) -> Estimate:
    """Few blocks leave everything possible, which is no interval."""
    if not np.isfinite([found.low, found.high]).all():
        return Estimate(found.value)
    return Estimate(found.value, found.low, found.high)


def _memory(processes: Sequence[ProcessResult]) -> Estimate | None:
    """Whole bytes, that one of its processes really had."""
    found = estimate(processes, _largest_peak)
    if found is None:
        return None
    low, high = (None if end is None else float(round(end)) for end in (found.low, found.high))
    return Estimate(median_low(peak for each in processes if (peak := _largest_peak(each)) is not None), low, high)


def _largest_peak(process: ProcessResult) -> float | None:
    memory = () if process.ranks is None else process.ranks.memory
    peaks = [each.bytes.get("peak") for each in memory]
    known = [peak for peak in peaks if peak is not None]
    return float(max(known)) if known and len(known) == len(peaks) else None


def _energy(ranks: int, energy: Cell) -> Cell:
    if energy.value is None:
        return Cell(None, energy.absent)
    return Cell(times(energy.value, 1 / ranks))
