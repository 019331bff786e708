"""Which blocks count: the noise gate of the verdict over what the parent read while each process was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap import verdict
from fairlap.engine import digits
from fairlap.race.laps import Lap

_FEWEST_LEFT = 6  # fewer blocks cannot reach 5 %
_MOST_DROPPED = 0.25  # of the blocks; beyond it noise is what this machine is like


@dataclass(frozen=True)
class Gated:
    """The blocks that count, and what to say of the others."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    told: str


def gated(blocks: Sequence[int], laps: Sequence[Lap]) -> Gated:
    """Blind to who ran: only the worst reading of each block counts.

    Where more than a quarter would go, or too few would be left to claim anything, all stay: every block is a fair
    one, and noise only widens the interval.
    """
    readings = _readings(blocks, laps)
    if not readings:
        return Gated(tuple(blocks), (), "")
    outcome = verdict.noise_gate(readings)
    dropped = tuple(block for block, stays in zip(blocks, outcome.kept, strict=True) if not stays)
    if not dropped:
        return Gated(tuple(blocks), (), "")
    causes = ", ".join(f"{name} in {count}" for name, count in outcome.dropped_by.items() if count)
    of_all = f"{len(dropped)} of {digits.counted(len(blocks), 'block')}"
    left = len(blocks) - len(dropped)
    if len(dropped) > _MOST_DROPPED * len(blocks) or left < _FEWEST_LEFT <= len(blocks):
        return Gated(tuple(blocks), (), f"{of_all} were noisy ({causes}); too many to leave out, so all count")
    return Gated(tuple(block for block in blocks if block not in dropped), dropped, f"{of_all} left out: {causes}")


def _readings(blocks: Sequence[int], laps: Sequence[Lap]) -> Mapping[str, npt.NDArray[np.float64]]:
    """Shaped (blocks, processes); NaN where a process was not read."""
    by_block = [[lap for lap in laps if lap.block == block] for block in blocks]
    names = sorted({name for lap in laps for name in lap.machine})
    width = max((len(block) for block in by_block), default=0)
    found = {name: np.full((len(blocks), width), np.nan) for name in names}
    for row, block in enumerate(by_block):
        for column, lap in enumerate(block):
            for name, value in lap.machine.items():
                found[name][row, column] = value
    return found
