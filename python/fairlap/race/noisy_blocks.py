"""Which blocks count: the noise gate of the verdict over what the parent read while each process was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap import verdict
from fairlap.engine import digits
from fairlap.meters import disturbances
from fairlap.race.process_result import ProcessResult

_MOST_DROPPED = 0.25  # of the blocks; beyond it noise is what this machine is like
_BUSY = 0.1


@dataclass(frozen=True)
class Gated:
    """The blocks that count, and what to say of the others."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    told: str


def gated(blocks: Sequence[int], processes: Sequence[ProcessResult], comparisons: int = 1) -> Gated:
    """Blind to who ran: a block's readings decide, and they do not say whose they are.

    At most a quarter goes, the noisiest first, and never so many that too few are left to claim anything in a family of
    so many comparisons: every block is a fair one, and noise only widens the interval.
    """
    readings = _readings(blocks, processes)
    if not readings:
        return Gated(tuple(blocks), (), "")
    outcome = verdict.noise_gate(readings)
    noisy = [place for place in np.argsort(-outcome.excess, kind="stable") if not outcome.kept[place]]
    if not noisy:
        return Gated(tuple(blocks), (), "")
    allowed = min(int(_MOST_DROPPED * len(blocks)), max(len(blocks) - verdict.blocks_to_claim(comparisons), 0))
    dropped = tuple(sorted(blocks[place] for place in noisy[:allowed]))
    causes = ", ".join(f"{name} in {count}" for name, count in outcome.dropped_by.items() if count)
    of_all = f"{len(noisy)} of {digits.counted(len(blocks), 'block')}"
    told = f"{of_all} left out: {causes}"
    if not dropped:
        told = f"{of_all} were noisy ({causes}); too many to leave out, so all count"
    elif len(dropped) < len(noisy):
        told = f"{of_all} were noisy ({causes}); the worst {len(dropped)} are left out"
    return Gated(tuple(block for block in blocks if block not in dropped), dropped, told)


def busy_with_others(processes: Sequence[ProcessResult]) -> str:
    """What to say when the machine was busy all the time, so that no block stands out; empty when it was not.

    A contestant whose own threads outnumber the cores waits too, so the least reading of each block counts.
    """
    by_block: dict[int, list[float]] = {}
    for process in processes:
        if disturbances.RUN_QUEUE in process.machine:
            by_block.setdefault(process.block, []).append(process.machine[disturbances.RUN_QUEUE])
    if not by_block:
        return ""
    waited = float(np.median([min(own) for own in by_block.values()]))
    if waited < _BUSY:
        return ""
    return (
        f"the machine was busy with other work: whoever ran, somebody waited for a core {waited:.0%} of the time; "
        "see fairlap doctor"
    )


def _readings(blocks: Sequence[int], processes: Sequence[ProcessResult]) -> Mapping[str, npt.NDArray[np.float64]]:
    """Shaped (blocks, processes); NaN where a process was not read."""
    by_block = [[process for process in processes if process.block == block] for block in blocks]
    names = sorted({name for process in processes for name in process.machine})
    width = max((len(block) for block in by_block), default=0)
    found = {name: np.full((len(blocks), width), np.nan) for name in names}
    for row, block in enumerate(by_block):
        for column, process in enumerate(block):
            for name, value in process.machine.items():
                found[name][row, column] = value
    return found
