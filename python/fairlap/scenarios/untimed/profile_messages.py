"""The messages about where the time of a call goes, and what a process showed of it.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fairlap.scenarios.asking import Ask, Reply


class Operator(msgspec.Struct, frozen=True):
    """One operator or kernel in all calls of the work that were profiled."""

    name: str  # the framework's own, such as "aten::addmm"
    kind: str  # in one word of fairlap's, such as "matmul"; empty where the name does not say
    calls: float  # per call of the work
    self_ns: (
        float  # per call of the work, without the operators that it called; median over the faster half of the calls
    )
    flops: float | None = None  # per call of the work, where the profiler counts them


class Profile(msgspec.Struct, frozen=True):
    """What one process spent its calls on."""

    profiler: str
    calls: int  # that were profiled
    call_ns: float  # the median wall time of the faster half of the profiled calls
    plain_call_ns: float  # the same of calls in the same process before the profiler began
    operators: tuple[Operator, ...]  # the longest first

    @property
    def operators_ns(self) -> float:
        return sum(operator.self_ns for operator in self.operators)


class Profiled(Reply, frozen=True, tag="profiled"):
    profile: Profile
    traced: bool = False  # the trace was written; OpenVINO's counters, for example, have no timeline


class ProfileCalls(Ask[Profiled], frozen=True, tag="profile"):
    """Call under the framework's own profiler. Nothing of this process is timed afterwards."""

    served_by: ClassVar[str] = "fairlap.scenarios.untimed.profile:serve"

    seconds: float  # about so long without the profiler, and as many calls with it
    trace: str = ""  # where the profiler's events go, as Chrome's JSON; nowhere by default


class OverheadMeasured(Reply, frozen=True, tag="overhead_measured"):
    call_ns: float | None = None
    why: str = ""  # there is none


class Overhead(Ask[OverheadMeasured], frozen=True, tag="overhead"):
    """Time a call with next to nothing to compute, with the same settings. Nothing but ``drop`` or ``quit`` follows."""

    served_by: ClassVar[str] = "fairlap.scenarios.untimed.overhead:serve"
