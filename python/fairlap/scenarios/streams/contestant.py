"""One server of a race: its connections, its process if fairlap started it, and what it answers on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from fairlap.engine.measurement import Notice
from fairlap.request.fields.streams import Manners
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.clients.client import Client, RawAnswer
from fairlap.scenarios.streams.clients.client_of_server import connected
from fairlap.scenarios.streams.clients.manner import USUAL, Manner
from fairlap.scenarios.streams.equal_work.examination import Examined
from fairlap.scenarios.streams.issue import CountsFrom, Served, Times
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.several_clients.load_share import LoadShare
from fairlap.scenarios.streams.started.started_server import E_LEFT_RUNNING, StartedServer
from fairlap.scenarios.streams.workload.manners import with_manners
from fairlap.scenarios.streams.workload.sessions import Numbers, Session

_TOKENS_TO_WAKE = 16
_ENDING_S = 1.0


class SharingClients(Protocol):
    """Several that share each load; this process then only asks for single answers."""

    def offer(self, load: LoadShare) -> Served: ...

    def disconnect(self, server: StreamServer) -> None: ...


@dataclass
class Contestant:
    server: StreamServer
    examined: Examined | None = None
    process: StartedServer | None = None  # None of one that fairlap did not start
    version: str = ""
    is_new: bool = False  # its process has not answered yet
    shared_by: SharingClients | None = None  # None: this process is the client
    _clients: list[Client] = field(default_factory=list)

    def is_not_there(self, why: Notice) -> None:
        """Ask nothing of it any more."""
        fields = self.server.protocol.fields[-1] if self.examined is None else self.examined.fields
        self.examined = Examined(fields, (), 0.0, "", Unqualified(why.text, why.code))

    @contextmanager
    def having_turn(self) -> Iterator[None]:
        """Let its process run. Between turns it is stopped."""
        if self.process is None:
            yield
            return
        self._note_left_running(self.process.thaw())
        try:
            yield
        finally:
            self.end_turn()

    def wake(self, asked: StreamsAsked) -> None:
        """Let it answer new prompts that do not count.

        While it was stopped, others had the processor's caches; a new process prepares much at its first answers.
        """
        [client] = self._connected(asked, 1)
        prompts, tokens = asked.examples()[:1], min(asked.load.tokens, _TOKENS_TO_WAKE)
        if self.is_new:
            prompts, tokens, self.is_new = asked.examples(), asked.load.tokens, False
        for prompt in prompts:
            client.ask(self.server.body(prompt, tokens, self.found.fields))

    def stop(self) -> None:
        """Stop its process until its next turn. Connections are not kept: as it wakes, it may close idle ones."""
        if self.process is not None:
            self.close()
            self._note_left_running(self.process.freeze())

    def end_turn(self) -> None:
        """End its process where the next turn has a new one, else stop it."""
        if self.process is not None and self.server.start is not None and self.server.start.restarts:
            self.close()
            self.process.end()
        else:
            self.stop()

    def note_end(self) -> None:
        """Look whether its process has ended. One that has just broken off an answer may be about to."""
        failed = self.examined is not None and self.examined.why_not is not None
        if self.process is not None and (why := self.process.why_ended(_ENDING_S if failed else 0.0)):
            self.is_not_there(why)

    def _note_left_running(self, why: str) -> None:
        if why and self.found.why_not is None:
            self.examined = replace(self.found, why_not=Unqualified(why, E_LEFT_RUNNING))

    @property
    def found(self) -> Examined:
        assert self.examined is not None
        return self.examined

    def load(
        self,
        asked: StreamsAsked,
        due_ns: Times,
        connections: int,
        seed: int,
        numbers: Numbers | None = None,
        manners: Manners | None = None,
    ) -> Served:
        """Offer sessions that are due at these times; the same seed draws the same ones.

        Those of usual clients alone, beside ones with ``manners``, have other prompts than these: they are new too.
        ``numbers`` are those of a trace that is replayed.
        """
        load, users = asked.load, asked.load.concurrency is not None
        drawn_from = seed if manners is None or manners else seed + 1
        sessions = asked.source.sessions(len(due_ns), drawn_from, numbers=numbers, think_s=load.think_s, users=users)
        if manners:
            sessions = with_manners(sessions, manners, seed)
        return self.offer(asked, sessions, due_ns, connections, counts_from="start" if users else "due")

    def asked_alone(self, asked: StreamsAsked, manner: Manner = USUAL) -> RawAnswer:
        """Ask for one answer of the usual length to a new prompt, while nothing else is asked."""
        [client] = self._connected(asked, 1)
        body = self.server.body(asked.examples()[0], asked.load.tokens, self.found.fields)
        return client.ask(body, manner)

    def offer(
        self,
        asked: StreamsAsked,
        sessions: Sequence[Session],
        due_ns: Times,
        connections: int,
        *,
        counts_from: CountsFrom = "due",
    ) -> Served:
        load = self.share(asked, sessions, due_ns, connections, counts_from)
        if self.shared_by is not None:
            return self.shared_by.offer(load)
        served = load.served_by(self._connected(asked, connections))
        if served.interrupted:
            raise KeyboardInterrupt
        return served

    def share(
        self,
        asked: StreamsAsked,
        sessions: Sequence[Session],
        due_ns: Times,
        connections: int,
        counts_from: CountsFrom = "due",
    ) -> LoadShare:
        return LoadShare(
            server=self.server,
            fields=self.found.fields,
            certificates=asked.certificates,
            most_tokens=asked.most_tokens,
            sessions=tuple(sessions),
            due_ns=due_ns,
            connections=connections,
            counts_from=counts_from,
            lasts_s=self._lasts_s(sessions, connections if counts_from == "start" else len(sessions)),
        )

    def _lasts_s(self, sessions: Sequence[Session], at_once: int) -> float:
        """As long as if the server answered one after another."""
        thinking_s = [sum(each.thinks_ns) / 1e9 for each in sessions]
        requests = sum(len(each.tokens) for each in sessions)
        reading_s = [each.manner.reading_s(self.found.bytes_per_token * sum(each.tokens)) for each in sessions]
        thinks_s, reads_s = (max(max(each), sum(each) / at_once) for each in (thinking_s, reading_s))
        return thinks_s + reads_s + requests * self.found.alone_s

    def _connected(self, asked: StreamsAsked, connections: int) -> list[Client]:
        return connected(self._clients, connections, self.server, asked.certificates, asked.most_tokens)

    def close(self) -> None:
        """End its connections."""
        if self.shared_by is not None:
            self.shared_by.disconnect(self.server)
        while self._clients:
            self._clients.pop().close()
