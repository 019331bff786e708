"""The messages of a contestant that runs as several ranks, and what became known of them.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from fairlap.meters.memory import Memory
from fairlap.request.fields.scale import Rank, Scale
from fairlap.scenarios.asking import Ask, Prepared, Reply


class RankLimits(msgspec.Struct, frozen=True):
    """How long the ranks of a contestant may take, in seconds.

    What conducts them then names those that did not answer, for which the parent leaves it some time.
    """

    start_s: float = 60.0
    prepare_s: float = 900.0
    answer_s: float = 300.0
    measure_s: float = 600.0


class SteppedAlone(Reply, frozen=True, tag="stepped_alone"):
    """What the exchange adds to a step is the time together less that of the slowest rank alone."""

    together_ns: tuple[float, ...] = ()  # by turn: the median step of all ranks together
    alone_ns: tuple[tuple[float, ...], ...] = ()  # by rank, then by turn: its median step alone
    why: str = ""  # there are none


class StepAlone(Ask[SteppedAlone], frozen=True, tag="step_alone"):
    """Take turns: steps of all ranks together, and the same steps of each rank on its own part.

    The latter are without exchanging anything. Nothing but ``overhead`` and ``quit`` follows.
    """

    served_by: ClassVar[str] = "fairlap.scenarios.ranks.steps_alone:serve"

    seconds: float  # of both kinds together
    turns: int  # of each kind
    steps: int = 0  # of each turn, the same for all ranks; a conductor chooses it


class PrepareCollectives(Ask[Prepared], frozen=True, tag="prepare_collectives"):
    """Start the ranks of a framework, and nothing but its collective operations. The answer is that to ``prepare``."""

    framework: str
    threads: int  # of each rank
    scale: Scale
    device: str = "cpu"
    rank: Rank | None = None  # of one of these ranks
    limits: RankLimits = RankLimits()
    precision: Literal["fp32"] = "fp32"
    files: tuple[str, ...] = ()  # that it reads

    @property
    def service(self) -> str:
        kind = "CollectivesOfRanks" if self.rank is None else "CollectivesOfRank"
        return f"fairlap.scenarios.collectives.worker.services:{kind}"

    @property
    def text(self) -> str:
        return "prepare"


class RanksFound(msgspec.Struct, frozen=True):
    """What one process of a contestant showed of its ranks, each in order of their numbers."""

    hosts: tuple[str, ...]
    memory: tuple[Memory, ...] = ()
    stepped: SteppedAlone = SteppedAlone()
