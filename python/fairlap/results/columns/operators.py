"""In which operators a contestant spends a call, over its profile processes.

The times are those of profiled calls, which take longer than others; nothing is scaled. Self times are of wall time on
each thread: where operators ran in parallel they add up to more than the call, and shares are of that sum then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.run import Run
from fairlap.request.work import Work
from fairlap.scenarios.untimed.profile_messages import Operator, Profile

OVERHEAD = "overhead"
"""What no operator accounts for: the interpreter, dispatch, waiting, and the profiler itself."""


@dataclass(frozen=True)
class OperatorShare:
    operator: Operator  # medians over the processes; 0 in those that did not run it
    share: float  # of the profiled call, or of the sum of all operators where that is longer


@dataclass(frozen=True)
class ContestantProfile:
    """Of one contestant on one work. ``why`` is what kept it from being profiled; then the rest is empty."""

    contestant: str
    processes: int
    profiler: str = ""
    call_ns: float = 0.0
    plain_call_ns: float = 0.0
    operators: tuple[OperatorShare, ...] = ()  # the longest first
    why: str = ""
    code: str = ""

    @property
    def operators_ns(self) -> float:
        return sum(each.operator.self_ns for each in self.operators)

    @property
    def overhead_ns(self) -> float:
        return max(self.call_ns - self.operators_ns, 0.0)

    @property
    def parallel(self) -> float:
        """How many operators ran at a time; 1 unless their times add up to more than the call."""
        return max(self.operators_ns / self.call_ns, 1.0)

    @property
    def slowdown(self) -> float:
        """How many times as long a profiled call takes."""
        return self.call_ns / self.plain_call_ns


def contestant_profiles(run: Run, work: Work) -> list[ContestantProfile]:
    """In the plan's order; nothing of contestants that were never profiled."""
    own = [each for each in run.profiles if each.work_id == work.id]
    of_contestants = ([each for each in own if each.contestant == name.text] for name in run.plan.contestants)
    return [_of(each) for each in of_contestants if each]


def profiles_in(results: Sequence[ProfileResult]) -> list[Profile]:
    return [each.profile for each in results if each.profile is not None]


def self_times_ns(profiles: Sequence[Profile], name: str) -> list[float]:
    """Of one operator, or of the overhead, in each process."""
    if name == OVERHEAD:
        return [max(profile.call_ns - profile.operators_ns, 0.0) for profile in profiles]
    return [sum(each.self_ns for each in profile.operators if each.name == name) for profile in profiles]


def _of(own: Sequence[ProfileResult]) -> ContestantProfile:
    contestant = own[0].contestant
    profiles = profiles_in(own)
    if not profiles:
        return ContestantProfile(contestant, 0, why=own[0].message, code=own[0].code)
    names = {operator.name for profile in profiles for operator in profile.operators}
    operators = sorted((_median(profiles, name) for name in names), key=lambda each: (-each.self_ns, each.name))
    call_ns = median(profile.call_ns for profile in profiles)
    whole_ns = max(call_ns, sum(each.self_ns for each in operators))
    return ContestantProfile(
        contestant,
        len(profiles),
        profiles[0].profiler,
        call_ns,
        median(profile.plain_call_ns for profile in profiles),
        tuple(OperatorShare(each, each.self_ns / whole_ns) for each in operators),
    )


def _median(profiles: Sequence[Profile], name: str) -> Operator:
    ran = [operator for profile in profiles for operator in profile.operators if operator.name == name]
    absent = [0.0] * (len(profiles) - len(ran))
    flops = [each.flops for each in ran if each.flops is not None]
    return Operator(
        name,
        ran[0].kind,
        calls=median([*(each.calls for each in ran), *absent]),
        self_ns=median([*(each.self_ns for each in ran), *absent]),
        flops=median(flops) if flops else None,
    )
