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
    """Blind to who ran: a block's readings decide, and they do not say whose they are.

    At most a quarter goes, the noisiest first, and never so many that too few are left to claim anything: every block
    is a fair one, and noise only widens the interval.
    """
    readings = _readings(blocks, laps)
    if not readings:
        return Gated(tuple(blocks), (), "")
    outcome = verdict.noise_gate(readings)
    noisy = [place for place in np.argsort(-outcome.excess, kind="stable") if not outcome.kept[place]]
    if not noisy:
        return Gated(tuple(blocks), (), "")
    allowed = min(int(_MOST_DROPPED * len(blocks)), max(len(blocks) - _FEWEST_LEFT, 0))
    dropped = tuple(sorted(blocks[place] for place in noisy[:allowed]))
    causes = ", ".join(f"{name} in {count}" for name, count in outcome.dropped_by.items() if count)
    of_all = f"{len(noisy)} of {digits.counted(len(blocks), 'block')}"
    told = f"{of_all} left out: {causes}"
    if not dropped:
        told = f"{of_all} were noisy ({causes}); too many to leave out, so all count"
    elif len(dropped) < len(noisy):
        told = f"{of_all} were noisy ({causes}); the worst {len(dropped)} are left out"
    return Gated(tuple(block for block in blocks if block not in dropped), dropped, told)


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
