"""The columns of calls whose size changes."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import ScenarioColumns, about
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.process_result import CompileCaches

_mix = partial(about, group="mix")


class CallAtSize(msgspec.Struct, frozen=True):
    """The medians over processes at one size of a mix."""

    size: str  # of the dimension; ``batch=4,sequence=37`` of several
    share: float  # of the calls
    call_ns: Estimate
    first_s: float | None = None  # its first call; None where the contestant was prepared for this size
    compiled: float | None = None  # graphs that the first call compiled; None where nothing counts them


class ReadyInBlock(msgspec.Struct, frozen=True):
    """One process of a race over a mix."""

    block: int
    ready_s: float  # until it was ready for every size: its first answer, and the stalls at the other sizes
    call_ns: float
    caches: CompileCaches  # of its compiler, on disk, when it began


class MixRow(ScenarioColumns, frozen=True, kw_only=True):
    mix: Annotated[str, _mix("The sizes that change from call to call; empty where calls have one.")]
    mix_stalls_s: Annotated[
        Estimate | None,
        _mix("How much longer first calls at the other sizes than its first take than later ones, all of them."),
    ]
    mix_stall_share: Annotated[Estimate | None, _mix("How much of the time of these first calls that is.")]
    mix_compiled: Annotated[float | None, _mix("Graphs that were compiled for all sizes, the median over processes.")]
    mix_ready_s: Annotated[
        Estimate | None,
        _mix("From the start of a process until it is ready for every size, without converting the model."),
    ]
    mix_by_size: Annotated[list[CallAtSize], _mix("Time by size, in the order of the sizes.")]
    mix_by_block: Annotated[list[ReadyInBlock], _mix("Of each process: what a break-even is computed from.")]
