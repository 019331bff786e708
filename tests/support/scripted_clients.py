"""Client processes on made-up clocks that measure what a script says, and end when it says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from fairlap.launch.cluster.called_program import ProgramLost
from fairlap.request.fields.server_address import ServerAddress
from fairlap.scenarios.streams.answers import Answer
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.manner import USUAL
from fairlap.scenarios.streams.floor.client_floor import FloorTimes
from fairlap.scenarios.streams.issue import CountsFrom, Served
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.several_clients.load_share import LoadShare
from fairlap.scenarios.streams.several_clients.messages import (
    CALLS,
    ENCODER,
    Begin,
    Call,
    Check,
    ClockRead,
    Describe,
    Description,
    Disconnect,
    Done,
    FloorMeasured,
    Measured,
    MeasureFloor,
    Prepare,
    ReadClock,
)
from fairlap.scenarios.streams.several_clients.messages import (
    Answer as Reply,
)
from fairlap.scenarios.streams.workload.sessions import Session
from fairlap.version import __version__

TOKENS = 3


class Clock:
    """What all machines share, in true time; each has its own offset to it."""

    def __init__(self) -> None:
        self.true_ns = 10**12

    def now_ns(self) -> int:
        self.true_ns += 50
        return self.true_ns


@dataclass
class ScriptedClient:
    """Answers to prompt N take ``took_ns(N)``, a third of it to the first token."""

    clock: Clock
    offset_ns: int
    took_ns: Callable[[int], float]
    host: str = "a"
    starts_late_ns: int = 0
    dies_at: type | None = None  # the call at which it does
    served: list[int] = field(default_factory=list)  # prompts, as a server would count them
    shares: list[LoadShare] = field(default_factory=list)
    is_closed: bool = False

    def call(self, message: bytes, within_s: float) -> bytes:
        asked = CALLS.decode(message)
        if self.is_closed or (self.dies_at is not None and isinstance(asked, self.dies_at)):
            raise ProgramLost("its process was ended by SIGKILL")
        self.clock.true_ns += 40_000  # the way there
        answer = ENCODER.encode(self._answer(asked))
        self.clock.true_ns += 90_000
        return answer

    def close(self) -> None:
        self.is_closed = True

    def _now_ns(self) -> int:
        return self.clock.now_ns() + self.offset_ns

    def _answer(self, asked: Call) -> Reply:
        match asked:
            case Describe():
                return Description(self.host, self.host, __version__)
            case ReadClock():
                return ClockRead(self._now_ns(), self._now_ns())
            case Prepare(share):
                self.shares.append(share)
            case Begin(at_ns):
                return Measured(self._measured(self.shares[-1], at_ns + self.starts_late_ns))
            case MeasureFloor(share):
                added = np.full(len(share.sessions), 1e6)
                return FloorMeasured(FloorTimes(len(added), added, np.zeros(0), added))
            case Check() | Disconnect():
                pass
        return Done()

    def _measured(self, share: LoadShare, began_at_ns: int) -> Served:
        turns = [len(each.tokens) for each in share.sessions]
        prompts = np.repeat([each.number for each in share.sessions], turns)
        self.served += [each.number for each in share.sessions]
        due_ns = np.repeat(share.due_ns, turns)
        took_ns = np.array([self.took_ns(each) for each in prompts.tolist()])
        first_ns, last_ns = due_ns + took_ns / 3, due_ns + took_ns
        answers = [
            Answer(
                tuple(int(began_at_ns + each) for each in np.linspace(first, last, TOKENS)),
                (1,) * TOKENS, f"text {number}", TOKENS, "events' usage", asked_tokens=TOKENS,
            )
            for number, first, last in zip(prompts.tolist(), first_ns.tolist(), last_ns.tolist(), strict=True)
        ]  # fmt: skip
        return Served(
            from_ns=due_ns,
            first_ns=first_ns,
            last_ns=last_ns,
            ended_ns=last_ns,
            lateness_ns=np.zeros(len(prompts)),
            prompts=prompts,
            answers=tuple(answers),
            elapsed_s=float(last_ns.max()) / 1e9,
            client_share=0.1,
            uncertainty_ns=1e3,
            interrupted=False,
            sent=tuple(f"{each}" for each in prompts),
            manners=(USUAL,) * len(prompts),
            began_at_ns=began_at_ns,
        )


def a_load(requests: int, connections: int = 8, *, users: bool = False, turns: Sequence[int] = (1,)) -> LoadShare:
    """One session each millisecond, or all at once of users; they have so many requests, in turn."""
    server = StreamServer("s", ServerAddress("127.0.0.1", 1, "/v1"), "m", "completions", "", 1.0)
    sessions = [
        Session(number, Prompt(prompt=f"{number}"), (TOKENS,) * own, (0.0,) * own, ("more",) * (own - 1))
        for number in range(requests)
        for own in [turns[number % len(turns)]]
    ]
    due_ns = np.array([0.0 if users else 1e6 * each for each in range(requests)])
    counts_from: CountsFrom = "start" if users else "due"
    return LoadShare(server, "forced", Certificates(), TOKENS, tuple(sessions), due_ns, connections, counts_from, 0.0)


def scripted(clock: Clock, offsets_ns: Sequence[int], took_ns: Callable[[int], float]) -> dict[str, ScriptedClient]:
    return {f"host {place}": ScriptedClient(clock, each, took_ns) for place, each in enumerate(offsets_ns)}
