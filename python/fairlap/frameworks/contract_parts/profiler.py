"""What a framework's own profiler gives: calls under it, and what each spent on which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlap.models.arrays import Arrays


@dataclass(frozen=True)
class Spent:
    """What one call spent in one operator, over all the times that it ran it."""

    calls: int
    self_ns: float  # without the operators that it called
    flops: float | None = None


@dataclass(frozen=True)
class ProfiledCall:
    """One call under a profiler: its wall time, and what it spent on each operator by the framework's name for it."""

    wall_ns: float
    operators: Mapping[str, Spent]


@dataclass(frozen=True)
class Profiler:
    """The framework's own profiler.

    It is created with the contestant and must not do anything before it is used, which happens only in processes that
    are not timed.

    ``record`` makes so many calls under it, each to its completion, and writes its events to a file as Chrome's JSON,
    where one is named and it has a timeline. ``bind`` stands in for the contestant's own where a profiler has to be
    switched on when the model is built: the work is then built once more, for the profiler.
    """

    name: str
    record: Callable[[Callable[[], Any], int, Path | None], list[ProfiledCall]]
    bind: Callable[[Arrays], Callable[[], Any]] | None = None
