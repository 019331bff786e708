"""The share of a load that one client takes, and how sessions and connections are dealt out to several clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.streams.clients.client import Certificates, Client
from fairlap.scenarios.streams.issue import CountsFrom, Served, serve
from fairlap.scenarios.streams.protocols.contract import Fields
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.workload.sessions import Session


@dataclass(frozen=True)
class LoadShare:
    """Everything that a client needs; it draws nothing itself."""

    server: StreamServer
    fields: Fields
    certificates: Certificates
    most_tokens: int  # of an answer
    sessions: tuple[Session, ...]
    due_ns: npt.NDArray[np.float64]
    connections: int
    counts_from: CountsFrom
    lasts_s: float  # after the last session is due, if the server answered one after the other

    def served_by(self, clients: Sequence[Client]) -> Served:
        return serve(
            clients,
            self.sessions,
            self.due_ns,
            write=lambda prompt, tokens: self.server.body(prompt, tokens, self.fields),
            server=self.server,
            counts_from=self.counts_from,
            lasts_s=self.lasts_s,
        )


@dataclass(frozen=True)
class Dealt:
    """``places`` are those of its sessions among all."""

    places: npt.NDArray[np.int64]
    share: LoadShare


def dealt(load: LoadShare, clients: int) -> list[Dealt]:
    """Deal sessions out in turns, as many users or connections to each, so that together they are exactly the load.

    Some clients get none where there are fewer connections or sessions than clients.
    """
    used = min(clients, load.connections, len(load.sessions))
    numbers = np.arange(len(load.sessions))
    turns = numbers % load.connections if load.counts_from == "start" else numbers  # each user asks as often
    found = []
    for number in range(used):
        places = np.flatnonzero(turns % used == number)
        connections = len(range(number, load.connections, used))
        share = replace(
            load,
            sessions=tuple(load.sessions[each] for each in places),
            due_ns=load.due_ns[places],
            connections=min(connections, len(places)),
        )
        found.append(Dealt(places, share))
    return found
