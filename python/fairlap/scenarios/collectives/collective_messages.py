"""What ranks are asked of collective operations. A worker imports it before it says hello, so it must stay light."""

from __future__ import annotations

from typing import Literal

from fairlap.scenarios.asking import Ask, Reply

TimedOperation = Literal["all_reduce", "all_gather", "broadcast", "copy"]

COPY: TimedOperation = "copy"
"""In the place of a collective operation: each rank copies as many bytes in its own memory."""


class CollectiveTimed(Reply, frozen=True, tag="collective_timed"):
    """Of a conductor each time is that of the slowest rank."""

    times_ns: tuple[float, ...] = ()  # of a call, by sample
    why: str = ""  # there are none: the framework lacks the operation
    wrong: str = ""  # what was not right in a result


class TimeCollective(Ask[CollectiveTimed], frozen=True, tag="time_collective"):
    """Call one collective operation again and again, all ranks at the same time."""

    operation: TimedOperation
    bytes: int  # of float32 that each rank gives
    seconds: float
    samples: int = 0  # the same for all ranks, as is what follows; a conductor chooses them
    warmup: int = 0
    calls_per_sample: int = 1

    @property
    def text(self) -> str:
        return self.operation
