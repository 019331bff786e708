"""The messages of a contestant that runs as several ranks, and what became known of them.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

import msgspec

from fairlap.meters.memory import Memory


class RankLimits(msgspec.Struct, frozen=True):
    """How long the ranks of a contestant may take, in seconds. What conducts them then names those that did not answer,
    for which the parent leaves it some time."""

    start_s: float = 60.0
    prepare_s: float = 900.0
    answer_s: float = 300.0
    measure_s: float = 600.0


class StepAlone(msgspec.Struct, frozen=True, tag_field="type", tag="step_alone"):
    """Take turns: steps of all ranks together, and the same steps of each rank on its own part, without exchanging
    anything. Nothing but ``overhead`` and ``quit`` follows."""

    seconds: float  # of both kinds together
    turns: int  # of each kind
    steps: int = 0  # of each turn, the same for all ranks; a conductor chooses it


class SteppedAlone(msgspec.Struct, frozen=True, tag_field="type", tag="stepped_alone"):
    """What the exchange adds to a step is the time together less that of the slowest rank alone."""

    together_ns: tuple[float, ...] = ()  # by turn: the median step of all ranks together
    alone_ns: tuple[tuple[float, ...], ...] = ()  # by rank, then by turn: its median step alone
    why: str = ""  # there are none


class RanksFound(msgspec.Struct, frozen=True):
    """What one process of a contestant showed of its ranks, each in order of their numbers."""

    hosts: tuple[str, ...]
    memory: tuple[Memory, ...] = ()
    stepped: SteppedAlone = SteppedAlone()
