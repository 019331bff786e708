"""Whole blocks are dropped for what the machine did, before anyone looks at who was running.

The gate sees only readings, sorted inside each block so that it cannot know whose they are, and removes the block for
every contestant, so it cannot favour one. What it dropped and why is counted and printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fairlap.verdict.blocks import BadOption, Flags, Floats, UnequalBlocks
from fairlap.verdict.warnings import ManyBlocksDropped, StatisticalWarning


@dataclass(frozen=True)
class GateLimits:
    """A reading drops its block above an absolute limit, or far above what is usual in this run.

    Steal and throttling have a meaning of their own, so their limits are absolute. Run queue, involuntary switches and
    the drop of the clock are judged against the run, the worst of a block against the worst of the others, the second
    against the second, and so on: a contestant whose own threads always wait for each other hides no disturbance of
    the rest. A reading is noisy more than `spreads` robust spreads above the median, more than half as much again, and
    above the least that matters, which `relative` gives.
    """

    absolute: Mapping[str, float] = field(default_factory=lambda: {"steal share": 0.02, "throttled": 0.0})
    relative: Mapping[str, float] = field(
        default_factory=lambda: {"run queue": 0.05, "involuntary switches": 60.0, "clock drop": 0.02}
    )
    spreads: float = 6.0
    worrying_share: float = 0.25


@dataclass(frozen=True, eq=False)
class GateOutcome:
    """Which blocks stay, and how many each reading dropped.

    `excess` is, for every block, its worst reading divided by the limit; blocks that are kept have at most 1.
    """

    kept: Flags
    excess: Floats
    dropped_by: Mapping[str, int]
    warnings: tuple[StatisticalWarning, ...]

    @property
    def dropped(self) -> int:
        return int((~self.kept).sum())


def noise_gate(readings: Mapping[str, Floats], limits: GateLimits | None = None) -> GateOutcome:
    """Judge blocks by readings shaped (blocks, processes); NaN means that a process was not read."""
    limits = limits or GateLimits()
    known = {*limits.absolute, *limits.relative}
    unknown = sorted(set(readings) - known)
    if unknown or not readings:
        raise BadOption(f"no limit is known for {', '.join(unknown) or 'an empty set of readings'}")
    blocks = {name: np.asarray(values).shape[0] for name, values in readings.items()}
    if len(set(blocks.values())) != 1:
        raise UnequalBlocks(f"readings cover different numbers of blocks: {blocks}")
    excess = np.zeros(next(iter(blocks.values())))
    dropped_by: dict[str, int] = {}
    for name, values in readings.items():
        by_rank = _sorted_inside_blocks(np.asarray(values, dtype=np.float64))
        if np.isnan(by_rank).all():
            continue
        own = _excess(by_rank, name, limits)
        dropped_by[name] = int((own > 1).sum())
        excess = np.maximum(excess, own)
    kept = excess <= 1
    dropped = int((~kept).sum())
    warnings = (ManyBlocksDropped(dropped, kept.size),) if dropped > limits.worrying_share * kept.size else ()
    return GateOutcome(kept, excess, dropped_by, warnings)


def _excess(by_rank: Floats, name: str, limits: GateLimits) -> Floats:
    """How many times as large as its limit each block's reading is; infinite where the limit is none at all."""
    if name in limits.absolute:
        readings, limit = by_rank[:, :1], np.array([limits.absolute[name]])
    else:
        readings, limit = by_rank, _usual_limits(by_rank, limits.spreads, limits.relative[name])
    readings = np.nan_to_num(readings, nan=0.0)
    above = np.divide(readings, limit, out=np.where(readings > 0, np.inf, 0.0), where=limit > 0)
    worst: Floats = above.max(axis=1)
    return worst


def _sorted_inside_blocks(values: Floats) -> Floats:
    """Sort inside blocks, the worst of each first, and what was not read last."""
    ordered: Floats = -np.sort(-values.reshape(values.shape[0], -1), axis=1)
    return ordered


def _usual_limits(by_rank: Floats, spreads: float, least: float) -> Floats:
    """One for each rank; ranks that no block has are left out of the judgement."""
    limits = np.full(by_rank.shape[1], np.inf)
    for rank in range(by_rank.shape[1]):
        read = by_rank[~np.isnan(by_rank[:, rank]), rank]
        if read.size:
            usual = float(np.median(read))
            spread = 1.4826 * float(np.median(np.abs(read - usual)))
            limits[rank] = max(usual + spreads * spread, 1.5 * usual, least)
    return limits
