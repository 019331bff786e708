"""Requests to a server, issued by the engine when they are due; each has its answer, or why there is none.

Due, start and end of a request are stamped natively, arrivals of its tokens by the client, both on one clock of the
system. The engine counts from the start of the load, which is found from calls that were stamped by both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairlap.engine.load import LoadResult, Worker, run_load
from fairlap.engine.measurement import Notice
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.client import CLOCK, E_STREAM_TIMEOUT, Client, RawAnswer
from fairlap.scenarios.streams.servers import StreamServer

Times = npt.NDArray[np.float64]

CountsFrom = Literal["due", "start"]
"""Of users who wait for their answer before they ask again, a request is due when its user is free: at its start."""

_SWITCH_S = 1e-4  # a thread whose bytes came waits no longer than this for another one that computes
_SPARE_S = 5.0


@dataclass(frozen=True)
class Served:
    """Times are in nanoseconds since the start of the load; not-a-number for requests without an answer."""

    from_ns: Times  # when each request was due, or began
    first_ns: Times
    last_ns: Times
    ended_ns: Times  # its connection is free again
    lateness_ns: Times  # from when a request was due to its start: of the client, or of too few connections
    prompts: npt.NDArray[np.integer[Any]]  # the number of each request's
    answers: tuple[Answer, ...]
    elapsed_s: float
    client_share: float  # of a core that this process used meanwhile
    uncertainty_ns: float  # of arrivals against when requests were due
    interrupted: bool

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.last_ns)


def serve(
    clients: Sequence[Client],
    bodies: Sequence[bytes],
    asked: npt.NDArray[np.uint32],
    due_ns: Times,
    *,
    server: StreamServer,
    counts_from: CountsFrom = "due",
) -> Served:
    """Ask each request's body; every client is a connection, and serves one request at a time."""
    raw: dict[int, RawAnswer] = {}
    with _quick_switches():
        cpu_s, began_s = time.process_time(), time.perf_counter()
        result = run_load(
            due_ns,
            asked,
            [Worker([partial(client.ask, body) for body in bodies]) for client in clients],
            kept=np.arange(len(due_ns), dtype=np.uint32),
            keep=raw.__setitem__,
            give_up_ns=1e9 * (server.timeout_s + _SPARE_S),
            warm_up=False,
            clock=CLOCK,
        )
        elapsed_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    late = Notice(
        E_STREAM_TIMEOUT, f"{server.subject} had not answered {server.timeout_s:g} s after the last request was due"
    )
    answers = tuple(
        answer_in(raw[number], server) if number in raw else Answer(failure=late) for number in range(len(due_ns))
    )
    return _served(result, raw, answers, asked, counts_from, elapsed_s, cpu_s)


def _served(
    result: LoadResult,
    raw: dict[int, RawAnswer],
    answers: tuple[Answer, ...],
    asked: npt.NDArray[np.uint32],
    counts_from: CountsFrom,
    elapsed_s: float,
    cpu_s: float,
) -> Served:
    start_ns, uncertainty_ns = _start_of_load(result, raw)
    from_ns = result.due_ns if counts_from == "due" else result.started_ns

    def since_start(read: Callable[[Answer], int]) -> Times:
        found = [np.nan if each.failure else read(each) - start_ns for each in answers]
        return np.array(found, np.float64)

    return Served(
        from_ns=from_ns,
        first_ns=since_start(lambda answer: answer.came_ns[0]),
        last_ns=since_start(lambda answer: answer.came_ns[-1]),
        ended_ns=result.completed_ns,
        lateness_ns=result.started_ns - from_ns,
        prompts=asked,
        answers=answers,
        elapsed_s=elapsed_s,
        client_share=cpu_s / elapsed_s,
        uncertainty_ns=uncertainty_ns,
        interrupted=result.interrupted,
    )


def _start_of_load(result: LoadResult, raw: dict[int, RawAnswer]) -> tuple[int, float]:
    """When the load started on the client's clock, and how far that may be off.

    A call begins after the engine stamped its start, and ends before the engine stamps its end.
    """
    both = [number for number in raw if np.isfinite(result.completed_ns[number])]
    if not both:
        return 0, np.inf
    latest = min(raw[number].began_ns - int(result.started_ns[number]) for number in both)
    earliest = max(raw[number].ended_ns - int(result.completed_ns[number]) for number in both)
    return (earliest + latest) // 2, abs(latest - earliest) / 2


@contextmanager
def _quick_switches() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
