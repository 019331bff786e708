"""Which operators account for the difference between two runs, where both have profiles.

Each profile process gives one time for each operator; an operator that a run does not have took no time in it. The
intervals are Welch's over the processes, one operator at a time. They know nothing of what changed between the runs,
such as the machine's speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.history.between_runs import Difference, RunsCompared
from fairlap.race.run import Run
from fairlap.results.columns.operators import OVERHEAD, profiles_in, self_times_ns
from fairlap.scenarios.untimed.profile_messages import Profile
from fairlap.verdict.figures.conventional_statistics import mean_difference


@dataclass(frozen=True)
class OperatorChange:
    """Times are per call of the work."""

    name: str  # or "overhead": what no operator accounts for
    kind: str
    before_ns: float
    after_ns: float
    difference_ns: float
    low_ns: float | None  # 95 %; None where a run has one profile process
    high_ns: float | None
    share: float | None  # of the difference of the calls; None where that is not clear of 0

    @property
    def is_clear(self) -> bool:
        return self.low_ns is not None and self.high_ns is not None and (self.low_ns > 0 or self.high_ns < 0)


@dataclass(frozen=True)
class OperatorsCompared:
    """One contestant on one work."""

    work_id: str
    work: str  # its title
    before: str  # the contestant as that run named it
    after: str
    profilers: tuple[str, str]
    processes: tuple[int, int]
    calls_ns: tuple[float, float]  # medians of profiled calls
    changes: tuple[OperatorChange, ...]  # clear of 0 and as large as the margin, the largest first
    others_ns: float  # the differences of all other operators together


def compare_operators(before: Run, after: Run, compared: RunsCompared, *, margin: float) -> list[OperatorsCompared]:
    """Of contestants that were profiled in both runs. Differences below this share of a call are left out."""
    found: dict[tuple[str, str, str], OperatorsCompared] = {}  # profiles are of one kind of conditions
    for each in compared.differences:
        key = (each.work_id, each.before, each.after)
        old = _profiles(before, each.work_id, each.before)
        new = _profiles(after, each.work_id, each.after)
        if old and new and key not in found:
            found[key] = _compared(each, old, new, margin)
    return list(found.values())


def _profiles(run: Run, work_id: str, contestant: str) -> list[Profile]:
    return profiles_in([each for each in run.profiles if (each.work_id, each.contestant) == (work_id, contestant)])


def _compared(
    difference: Difference, old: Sequence[Profile], new: Sequence[Profile], margin: float
) -> OperatorsCompared:
    calls = [[profile.call_ns for profile in profiles] for profiles in (old, new)]
    difference_ns, low_ns, high_ns = mean_difference(*calls)
    clear = low_ns is not None and high_ns is not None and (low_ns > 0 or high_ns < 0)
    kinds = {each.name: each.kind for profile in (*old, *new) for each in profile.operators}
    changes = [
        _change(name, kind, self_times_ns(old, name), self_times_ns(new, name), difference_ns if clear else None)
        for name, kind in {**kinds, OVERHEAD: ""}.items()
    ]
    least_ns = margin * float(np.median(calls[0]))
    shown = [each for each in changes if each.is_clear and abs(each.difference_ns) >= least_ns]
    return OperatorsCompared(
        difference.work_id,
        difference.work,
        difference.before,
        difference.after,
        (old[0].profiler, new[0].profiler),
        (len(old), len(new)),
        (float(np.median(calls[0])), float(np.median(calls[1]))),
        tuple(sorted(shown, key=lambda each: (-abs(each.difference_ns), each.name))),
        sum(each.difference_ns for each in changes if each not in shown),
    )


def _change(
    name: str, kind: str, old_ns: Sequence[float], new_ns: Sequence[float], of_calls_ns: float | None
) -> OperatorChange:
    difference_ns, low_ns, high_ns = mean_difference(old_ns, new_ns)
    share = difference_ns / of_calls_ns if of_calls_ns else None
    before_ns, after_ns = float(np.mean(old_ns)), float(np.mean(new_ns))
    return OperatorChange(name, kind, before_ns, after_ns, difference_ns, low_ns, high_ns, share)
