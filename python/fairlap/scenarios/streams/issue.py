"""Requests to a server, issued by the engine when they are due; each has its answer, or why there is none.

Due, start and end of a session are stamped natively, its requests and arrivals of their tokens by the client, all on
one clock of the system. The engine counts from the start of the load, which is found from calls that were stamped by
both.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.engine.load import LoadResult, Worker, run_load
from fairlap.engine.measurement import Notice
from fairlap.interrupts import called_at_a_signal
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import CLOCK, E_STREAM_TIMEOUT, Client, now_ns
from fairlap.scenarios.streams.clients.manner import Manner
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.several_clients.clock_offset import ClockOffset
from fairlap.scenarios.streams.users import Spoken, Users, Write
from fairlap.scenarios.streams.workload.sessions import Session

Times = npt.NDArray[np.float64]

CountsFrom = Literal["due", "start"]
"""Of users who wait for their answer before they ask again, a request is due when its user has thought."""

_SWITCH_S = 1e-4  # a thread whose bytes came waits no longer than this for another one that computes
_SPARE_S = 5.0
_TIMES_AS_LONG = 2.0  # as the load is expected to take, before it is given up


@dataclass(frozen=True)
class Served:
    """Times are in nanoseconds since the start of the load; not-a-number for requests without an answer."""

    from_ns: Times  # when each request was due
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
    sent: tuple[str, ...] = ()  # a digest of each request's prompt as it was sent
    manners: tuple[Manner, ...] = ()  # of each request's client
    busy_until_ns: float = np.inf  # all users were at work so long; then there was nothing left to ask
    began_at_ns: int = 0  # on the clock of the client
    by_client: tuple[OfClient, ...] = ()  # where several shared the load, of which this is then all
    sessions: npt.NDArray[np.integer[Any]] | None = None  # whose requests these are, where a client may be lost

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.last_ns)

    def only(self, these: npt.NDArray[np.bool_]) -> Served:
        """Leave out the other requests."""
        columns = {name: getattr(self, name)[these] for name in _COLUMNS}
        answers = tuple(compress(self.answers, these))
        sent, manners = tuple(compress(self.sent, these)), tuple(compress(self.manners, these))
        return replace(self, **columns, answers=answers, sent=sent, manners=manners)


@dataclass(frozen=True)
class OfClient:
    """What one of several clients measured, from its own start, which was ``began_ns`` after the first one's."""

    name: str
    served: Served
    clock: ClockOffset
    began_ns: float = 0.0


_COLUMNS = ("from_ns", "first_ns", "last_ns", "ended_ns", "lateness_ns", "prompts")


def serve(
    clients: Sequence[Client],
    sessions: Sequence[Session],
    due_ns: Times,
    *,
    write: Write,
    server: StreamServer,
    counts_from: CountsFrom = "due",
    lasts_s: float = 0.0,
) -> Served:
    """Let each session go on from when it is due; every client is a connection, and serves one at a time.

    ``lasts_s`` is how long the load is expected to last after the last one is due.
    """
    spoken: dict[int, Spoken] = {}
    users = Users(clients, sessions, write, server)
    longest = max((len(each.tokens) for each in sessions), default=1)
    with _quick_switches(), called_at_a_signal(users.leave):
        calls = users.calls
        cpu_s, began_s, began_at_ns = time.process_time(), time.perf_counter(), now_ns()
        result = run_load(
            due_ns,
            np.arange(len(due_ns), dtype=np.uint32),
            [Worker(calls) for _ in clients],
            kept=np.arange(len(due_ns), dtype=np.uint32),
            keep=spoken.__setitem__,
            give_up_ns=1e9 * (_TIMES_AS_LONG * lasts_s + longest * server.timeout_s + _SPARE_S),
            warm_up=False,
            clock=CLOCK,
        )
        elapsed_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    start = _start_of_load(result, spoken) or (began_at_ns, np.inf)
    return _served(result, spoken, sessions, server, counts_from, start, elapsed_s, cpu_s)


class _Row(NamedTuple):
    """One request."""

    from_ns: float
    ended_ns: float
    lateness_ns: float
    prompt: int
    answer: Answer
    sent: str
    manner: Manner


def _served(
    result: LoadResult,
    spoken: dict[int, Spoken],
    sessions: Sequence[Session],
    server: StreamServer,
    counts_from: CountsFrom,
    start: tuple[int, float],
    elapsed_s: float,
    cpu_s: float,
) -> Served:
    start_ns, uncertainty_ns = start
    late = Notice(E_STREAM_TIMEOUT, f"{server.subject} had not answered when the load was over")
    rows: list[_Row] = []
    for number, session in enumerate(sessions):
        began_ns = float(result.due_ns[number] if counts_from == "due" else result.started_ns[number])
        times = (began_ns, float(result.started_ns[number]), float(result.completed_ns[number]))
        rows += _rows(session, spoken.get(number), times, start_ns, server, late)

    def since_start(place: int) -> Times:
        found = [np.nan if each.answer.failure else each.answer.came_ns[place] - start_ns for each in rows]
        return np.array(found, np.float64)

    return Served(
        from_ns=np.array([each.from_ns for each in rows]),
        first_ns=since_start(0),
        last_ns=since_start(-1),
        ended_ns=np.array([each.ended_ns for each in rows]),
        lateness_ns=np.array([each.lateness_ns for each in rows]),
        prompts=np.array([each.prompt for each in rows], np.int64),
        answers=tuple(each.answer for each in rows),
        elapsed_s=elapsed_s,
        client_share=cpu_s / elapsed_s,
        uncertainty_ns=uncertainty_ns,
        interrupted=result.interrupted,
        sent=tuple(each.sent for each in rows),
        manners=tuple(each.manner for each in rows),
        busy_until_ns=np.inf if counts_from == "due" else float(np.nanmax(result.started_ns, initial=0.0)),
        began_at_ns=start_ns,
    )


def _rows(
    session: Session,
    spoken: Spoken | None,
    times: tuple[float, float, float],
    start_ns: int,
    server: StreamServer,
    late: Notice,
) -> Iterator[_Row]:
    """Of each of its requests; those after one that failed fail like it."""
    due_ns, started_ns, completed_ns = times
    asked = [] if spoken is None else spoken.asked
    why = late
    for turn, tokens in enumerate(session.tokens):
        from_ns = due_ns + session.thinks_ns[0] if turn == 0 else np.nan
        if turn >= len(asked):
            yield _Row(
                from_ns, np.nan, np.nan, session.number, Answer(failure=why, asked_tokens=tokens), "", session.manner
            )
            continue
        raw = asked[turn].raw
        answer = replace(answer_in(raw, server), asked_tokens=tokens)
        why = answer.failure or late
        began_ns = float(raw.began_ns - start_ns)
        if turn:
            from_ns = float(asked[turn].due_ns - start_ns)
        elif not session.thinks_ns[0]:
            began_ns = started_ns
        ended_ns = completed_ns if turn == len(session.tokens) - 1 else float(raw.ended_ns - start_ns)
        sent = _digest(asked[turn].prompt)
        yield _Row(from_ns, ended_ns, began_ns - from_ns, session.number, answer, sent, session.manner)


def _digest(prompt: Prompt) -> str:
    return hashlib.blake2b(msgspec.json.encode(prompt), digest_size=8).hexdigest()


def _start_of_load(result: LoadResult, spoken: dict[int, Spoken]) -> tuple[int, float] | None:
    """When the load started on the client's clock, and how far that may be off; None where no session ended.

    A call begins after the engine stamped its start, and ends before the engine stamps its end.
    """
    both = [number for number in spoken if np.isfinite(result.completed_ns[number])]
    if not both:
        return None
    latest = min(spoken[number].entered_ns - int(result.started_ns[number]) for number in both)
    earliest = max(spoken[number].ended_ns - int(result.completed_ns[number]) for number in both)
    return (earliest + latest) // 2, abs(latest - earliest) / 2


@contextmanager
def _quick_switches() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
