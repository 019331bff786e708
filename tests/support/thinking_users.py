"""Users who think between answers, at a server with one slot: in simulated time, and in theory."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from fairlap.engine.measurement import Notice
from fairlap.scenarios.streams.answers import Answer
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.workload.sessions import Session

Times = npt.NDArray[np.float64]


def one_slot(sessions: Sequence[Session], users: int, service_ns: Times) -> Served:
    """Serve first come first served, each as long as the next service; who has an answer takes the next session."""
    count = len(sessions)
    due = [(each.thinks_ns[0], place) for place, each in enumerate(sessions[:users])]
    heapq.heapify(due)
    due_ns, ends_ns, taken_ns, free_ns, after = np.zeros(count), np.zeros(count), np.zeros(count), 0.0, users
    for took_ns in service_ns:
        came_ns, place = heapq.heappop(due)
        free_ns = max(free_ns, came_ns) + took_ns
        due_ns[place], ends_ns[place] = came_ns, free_ns
        if after < count:
            taken_ns[after] = free_ns
            heapq.heappush(due, (free_ns + sessions[after].thinks_ns[0], after))
            after += 1
    return served_at(due_ns, ends_ns, busy_until_ns=float(taken_ns.max()))


def served_at(due_ns: Times, ends_ns: Times, busy_until_ns: float = np.inf) -> Served:
    """Answers of one token each; not-a-number ends are of requests that were refused."""
    refused = Answer(asked_tokens=1, failure=Notice("E_STREAM_BUSY", "too much to do"))
    return Served(
        from_ns=due_ns,
        first_ns=ends_ns,
        last_ns=ends_ns,
        ended_ns=ends_ns,
        lateness_ns=np.zeros(len(due_ns)),
        prompts=np.zeros(len(due_ns), np.int64),
        answers=tuple(
            Answer((round(end),), (1,), "a", 1, asked_tokens=1) if np.isfinite(end) else refused for end in ends_ns
        ),
        elapsed_s=1.0,
        client_share=0.0,
        uncertainty_ns=0.0,
        interrupted=False,
        sent=("",) * len(due_ns),
        busy_until_ns=busy_until_ns,
    )


def repairman_per_s(users: int, think_s: float, service_s: float) -> float:
    """Compute the throughput of M/M/1 with so many users: the machine-repairman model."""
    weights = np.cumprod([1.0, *((users - n) * service_s / think_s for n in range(users))])
    return float((1 - 1 / weights.sum()) / service_s)
