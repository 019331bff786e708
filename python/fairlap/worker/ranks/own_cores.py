"""Cores of its own for each rank of this machine, as many as it has threads.

Where ranks share cores, the kernel may put two of them on one core for tens of steps, and the other core idles: on two
cores, a step of two ranks of PyTorch then took 12 ms instead of 8.4.
"""

from __future__ import annotations

import os
from collections.abc import Collection

CORES = "FAIRLAP_CORES_OF_RANKS"
"""Those of rank 0, of rank 1 and so on: ``0,1/2,3``."""


def cores_for(ranks: int, threads: int, available: Collection[int]) -> dict[str, str]:
    """Set the variable that gives the ranks their cores; none where there are too few cores."""
    if ranks * threads > len(available):
        return {}
    cores = sorted(available)
    own = [cores[number * threads : (number + 1) * threads] for number in range(ranks)]
    return {CORES: "/".join(",".join(map(str, each)) for each in own)}


def bind(rank: int) -> None:
    """Before anything starts threads, which inherit the cores."""
    own = cores_of(rank)
    if own:
        os.sched_setaffinity(0, own)


def cores_of(rank: int) -> list[int]:
    """None where it is not bound."""
    by_rank = os.environ.get(CORES, "")
    return [int(core) for core in by_rank.split("/")[rank].split(",")] if by_rank else []
