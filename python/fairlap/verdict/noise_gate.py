"""Whole blocks are dropped for what the machine did, before anyone looks at who was running.

The gate sees only readings, takes the worst in each block, and removes the block for every contestant, so it
cannot favour one. What it dropped and why is counted and printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .arrays import Flags, Floats
from .doubts import Doubt, ManyBlocksDropped
from .errors import BadOption, UnequalBlocks


@dataclass(frozen=True)
class GateLimits:
    """A reading drops its block above an absolute limit, or far above what is usual in this run.

    Steal and throttling have a meaning of their own, so their limits are absolute. Run queue, involuntary
    switches and the drop of the clock are judged against the run: more than `spreads` robust spreads, and
    more than half as much again, above the median block.
    """

    absolute: Mapping[str, float] = field(default_factory=lambda: {"steal share": 0.02, "throttled": 0.0})
    relative: tuple[str, ...] = ("run queue", "involuntary switches", "clock drop")
    spreads: float = 6.0
    worrying_share: float = 0.25


@dataclass(frozen=True, eq=False)
class GateOutcome:
    """Which blocks stay, how many each reading dropped, and readings that were missing altogether."""

    kept: Flags
    dropped_by: Mapping[str, int]
    not_read: tuple[str, ...]
    doubts: tuple[Doubt, ...]

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
    kept = np.ones(next(iter(blocks.values())), dtype=np.bool_)
    dropped_by: dict[str, int] = {}
    not_read: list[str] = [name for name in sorted(known) if name not in readings]
    for name, values in readings.items():
        worst = _worst_of_each_block(np.asarray(values, dtype=np.float64))
        if np.isnan(worst).all():
            not_read.append(name)
            continue
        limit = limits.absolute[name] if name in limits.absolute else _usual_limit(worst, limits.spreads)
        noisy = worst > limit
        dropped_by[name] = int(noisy.sum())
        kept &= ~noisy
    dropped = int((~kept).sum())
    doubts = (ManyBlocksDropped(dropped, kept.size),) if dropped > limits.worrying_share * kept.size else ()
    return GateOutcome(kept, dropped_by, tuple(not_read), doubts)


def _worst_of_each_block(values: Floats) -> Floats:
    filled = np.where(np.isnan(values), -np.inf, values).reshape(values.shape[0], -1).max(axis=1)
    worst: Floats = np.where(np.isneginf(filled), np.nan, filled)
    return worst


def _usual_limit(worst: Floats, spreads: float) -> float:
    usual = float(np.nanmedian(worst))
    spread = 1.4826 * float(np.nanmedian(np.abs(worst - usual)))
    return max(usual + spreads * spread, 1.5 * usual)
