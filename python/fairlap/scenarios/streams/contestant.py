"""One server of a race: its connections, and what it showed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.client import StreamClient
from fairlap.scenarios.streams.examination import Examined
from fairlap.scenarios.streams.issue import Served, Times, serve
from fairlap.scenarios.streams.openai_api import Answer, body_of
from fairlap.scenarios.streams.rate_trials import SearchedRate
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.workload.sessions import Numbers, Session


@dataclass
class Contestant:
    server: StreamServer
    examined: Examined | None = None
    loads: list[Served] = field(default_factory=list)  # of complete blocks
    judged_ns: list[float] = field(default_factory=list)  # by block; not-a-number without a figure
    searched: list[SearchedRate] = field(default_factory=list)
    _clients: list[StreamClient] = field(default_factory=list)

    @property
    def found(self) -> Examined:
        assert self.examined is not None
        return self.examined

    @property
    def why_not(self) -> Unqualified | None:
        return self.found.why_not

    @property
    def answers(self) -> list[Answer]:
        return [answer for served in self.loads for answer in served.answers]

    def load(
        self, asked: StreamsAsked, due_ns: Times, connections: int, seed: int, numbers: Numbers | None = None
    ) -> Served:
        """Offer sessions that are due at these times; the same seed draws the same ones.

        ``numbers`` are those of a trace that is replayed.
        """
        users = asked.concurrency is not None
        sessions = asked.source.sessions(len(due_ns), seed, numbers=numbers, think_s=asked.think_s, users=users)
        fields = self.found.fields
        served = serve(
            self._connected(asked, connections),
            sessions,
            due_ns,
            write=lambda prompt, tokens: body_of(self.server, prompt, tokens, fields),
            host=self.server.address.text,
            timeout_s=self.server.timeout_s,
            counts_from="start" if users else "due",
            lasts_s=self._lasts_s(sessions, connections if users else len(sessions)),
        )
        if served.interrupted:
            raise KeyboardInterrupt
        return served

    def _lasts_s(self, sessions: Sequence[Session], at_once: int) -> float:
        """As long as if the server answered one after another."""
        thinking_s = [sum(each.thinks_ns) / 1e9 for each in sessions]
        requests = sum(len(each.tokens) for each in sessions)
        return max(max(thinking_s), sum(thinking_s) / at_once) + requests * self.found.alone_s

    def _connected(self, asked: StreamsAsked, connections: int) -> list[StreamClient]:
        """Open them before the load, so that no answer waits for that."""
        if len(self._clients) < connections:
            certificates = asked.certificates.context()
            more = range(connections - len(self._clients))
            self._clients += [StreamClient(self.server, certificates, asked.most_tokens) for _ in more]
        clients = self._clients[:connections]
        all(client.connect() for client in clients)  # up to the first that cannot
        return clients

    def close(self) -> None:
        while self._clients:
            self._clients.pop().close()
