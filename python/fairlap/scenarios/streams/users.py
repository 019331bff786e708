"""What users do: think, ask, and in a conversation ask again with the answer that they got."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Client, RawAnswer, now_ns
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.workload.sessions import Session

Write = Callable[[Prompt, int], bytes]
"""Writes the body of a request for a prompt and so many tokens."""


@dataclass(frozen=True)
class Asked:
    """One request. Times are on the client's clock."""

    due_ns: int  # its user had thought
    prompt: Prompt
    raw: RawAnswer


@dataclass
class Spoken:
    """The requests of a session, up to one that failed."""

    entered_ns: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def ended_ns(self) -> int:
        return self.asked[-1].raw.ended_ns if self.asked else self.entered_ns


class Users:
    """Each session has a connection for itself while it goes on."""

    def __init__(
        self, clients: Sequence[Client], sessions: Sequence[Session], write: Write, server: StreamServer
    ) -> None:
        self._free = deque(clients)
        self._sessions, self._write, self._server = sessions, write, server
        self._bodies = [write(each.first, each.tokens[0]) for each in sessions]
        self._over = threading.Event()

    @property
    def calls(self) -> list[Callable[[], Spoken]]:
        """One for each session; as many may run at once as there are connections."""
        return [partial(self._speak, number) for number in range(len(self._sessions))]

    def leave(self) -> None:
        """End their thinking, and ask nothing more."""
        self._over.set()

    def _speak(self, number: int) -> Spoken:
        spoken = Spoken(now_ns())
        client = self._free.pop()
        try:
            self._converse(client, self._sessions[number], self._bodies[number], spoken)
        finally:
            self._free.append(client)
        return spoken

    def _converse(self, client: Client, session: Session, body: bytes, spoken: Spoken) -> None:
        prompt = session.first
        due_ns = spoken.entered_ns + round(session.thinks_ns[0])
        for turn, tokens in enumerate(session.tokens):
            if turn:
                answer = answer_in(spoken.asked[-1].raw, self._server)
                if answer.failure is not None:
                    return
                prompt = prompt.after(answer.text, session.says[turn - 1])
                body = self._write(prompt, tokens)
                due_ns = spoken.ended_ns + round(session.thinks_ns[turn])
            if self._think(due_ns):
                return
            spoken.asked.append(Asked(due_ns, prompt, client.ask(body, session.manner)))

    def _think(self, until_ns: int) -> bool:
        """Return whether the load is over. A thread sleeps on another clock, which may be ahead."""
        while (left_ns := until_ns - now_ns()) > 0:
            if self._over.wait(left_ns / 1e9):
                return True
        return False
