"""One server of a race: its connections, and what it answers while nothing else is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.client import Client
from fairlap.scenarios.streams.examination import Examined
from fairlap.scenarios.streams.function_client import client_for
from fairlap.scenarios.streams.issue import Served, Times, serve
from fairlap.scenarios.streams.servers import StreamServer


@dataclass
class Contestant:
    server: StreamServer
    examined: Examined | None = None
    _clients: list[Client] = field(default_factory=list)

    @property
    def found(self) -> Examined:
        assert self.examined is not None
        return self.examined

    def load(self, asked: StreamsAsked, due_ns: Times, connections: int, seed: int) -> Served:
        """Offer requests that are due at these times; the same seed chooses the same prompts."""
        chosen, places = _prompts(len(asked.prompts), len(due_ns), seed)
        fields = self.found.fields
        served = serve(
            self._connected(asked, connections),
            [self.server.body(asked.prompts[each], asked.load.tokens, fields) for each in chosen],
            places,
            due_ns,
            server=self.server,
            counts_from="due" if asked.load.concurrency is None else "start",
        )
        if served.interrupted:
            raise KeyboardInterrupt
        return replace(served, prompts=chosen[places])

    def _connected(self, asked: StreamsAsked, connections: int) -> list[Client]:
        """Open them before the load, so that no answer waits for that."""
        if len(self._clients) < connections:
            certificates = asked.certificates.context()
            more = range(connections - len(self._clients))
            self._clients += [client_for(self.server, certificates, asked.load.tokens) for _ in more]
        clients = self._clients[:connections]
        all(client.connect() for client in clients)  # up to the first that cannot
        return clients

    def close(self) -> None:
        while self._clients:
            self._clients.pop().close()


def _prompts(prompts: int, requests: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Choose which prompts are sent, and the place among these of each request's: each once before any again."""
    draw = np.random.default_rng([seed, 2])
    order = np.concatenate([draw.permutation(prompts) for _ in range(-(-requests // prompts))])[:requests]
    chosen, places = np.unique(order, return_inverse=True)
    return chosen, places.astype(np.uint32)
