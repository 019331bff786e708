"""What a load beyond the capacity of a server shows: answers and times meanwhile, and how long it takes to recover.

A queue of constant service drains after its overload in the time of queueing theory: what came beyond its capacity,
over the capacity that the usual rate leaves.

A server that works at all of its answers at once ends few of them while more come: shared evenly among ten times as
many as it can serve, it ends nearly none in an overload of any length, however much it computes. So what it serves is
counted until no more requests are open than before the overload: then none of its work is left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fairlap.request.fields.streams import Overload
from fairlap.scenarios.streams.figures import Tokens
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.streams_found import OverloadFound
from fairlap.scenarios.streams.workload.overload import Step

Times = npt.NDArray[np.float64]

SUCCESSIVE = 5
"""Requests whose median is looked at: one that happened to be quick is no recovery."""


def overload_found(served: Served, step: Step, overload: Overload) -> OverloadFound:
    """Latency counts from when a request was due. One without a whole answer is as late as can be."""
    tokens = Tokens.of(served)
    before, after = step.is_before, step.is_after
    during = ~(before | after)
    usual_ns = _median(tokens.end_to_end_ns[before])
    since_ns = step.due_ns[after] - step.ends_ns
    took_ns = np.where(np.isnan(tokens.end_to_end_ns), np.inf, tokens.end_to_end_ns)[after]
    return OverloadFound(
        before_p50_ns=usual_ns,
        offered=step.during,
        failed_share=float((~served.answered)[~before].mean()),
        answered_per_s=_came_per_s(served.last_ns, step.begins_ns, step.ends_ns),
        served_per_s=_came_per_s(served.last_ns, step.begins_ns, _backlog_gone_ns(served, step)),
        answer_p50_ns=_median(tokens.end_to_end_ns[during]),
        first_token_p50_ns=_median(tokens.first_ns[during]),
        recovery_s=None if usual_ns is None else _recovery_s(since_ns, took_ns, (1 + overload.band) * usual_ns),
        watched_s=float(since_ns[-1]) / 1e9,
    )


def _came_per_s(last_ns: Times, begins_ns: float, ends_ns: float) -> float:
    """Count answers whenever they were due."""
    return 1e9 * int(((last_ns > begins_ns) & (last_ns <= ends_ns)).sum()) / (ends_ns - begins_ns)


def _backlog_gone_ns(served: Served, step: Step) -> float:
    """Return when no more requests are open than one that comes before the overload finds in the median.

    Those that have no whole answer in the end are none that were served.
    """
    came_ns = np.sort(served.last_ns[served.answered])
    due_ns = np.sort(served.from_ns[served.answered])
    before_ns = step.due_ns[step.is_before]
    found = np.searchsorted(due_ns, before_ns, "left") - np.searchsorted(came_ns, before_ns, "right")
    usual = np.median(found) if found.size else 0
    later_ns = np.array([step.ends_ns, *came_ns[came_ns > step.ends_ns]])
    still_open = np.searchsorted(due_ns, later_ns, "right") - np.searchsorted(came_ns, later_ns, "right")
    return float(later_ns[np.argmax(still_open <= usual)])


def _recovery_s(since_ns: Times, took_ns: Times, most_ns: float) -> float | None:
    """Return when the request was due that is in the middle of the first successive ones with a usual median."""
    medians = np.median(sliding_window_view(took_ns, SUCCESSIVE), axis=1)
    usual = np.flatnonzero(medians <= most_ns)
    if not usual.size:
        return None
    return float(since_ns[usual[0] + SUCCESSIVE // 2 if usual[0] else 0]) / 1e9


def _median(times_ns: Times) -> float | None:
    known = times_ns[np.isfinite(times_ns)]
    return float(np.median(known)) if known.size else None
