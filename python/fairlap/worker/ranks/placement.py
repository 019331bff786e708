"""Which rank runs on which host and cores, and the addresses at which ranks find each other and their conductor.

Ranks of this machine have cores of their own, as many as they have threads. Where they share cores, the kernel may put
two of them on one core for tens of steps, and the other core idles: on two cores, a step of two ranks of PyTorch then
took 12 ms instead of 8.4.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fairlap.request.fields.scale import LOOPBACK

_HERE = ("localhost", "127.0.0.1", "::1")
_PORTS_ELSEWHERE = range(20000, 30000)  # below those that systems hand out by themselves

CORES = "FAIRLAP_CORES_OF_RANKS"
"""Those of rank 0, of rank 1 and so on: ``0,1/2,3``."""


@dataclass(frozen=True)
class Place:
    """One host with its ranks, whose numbers follow each other."""

    host: str  # as the user named it; empty for this machine
    first: int
    ranks: int

    @property
    def is_here(self) -> bool:
        return not self.host

    @property
    def name(self) -> str:
        """By which other hosts find it."""
        return socket.gethostname() if self.is_here else self.host.rpartition("@")[2]


def places_of(ranks: int, hosts: Sequence[str]) -> tuple[Place, ...]:
    """As many ranks on each host as if they were dealt out in turn. Hosts without a rank are left out."""
    named = ["" if host in (*_HERE, socket.gethostname()) else host for host in hosts] or [""]
    found: list[Place] = []
    for place, host in enumerate(named):
        own = len(range(place, ranks, len(named)))
        if own:
            found.append(Place(host, sum(each.ranks for each in found), own))
    return tuple(found)


@dataclass(frozen=True)
class Addresses:
    """The address of each rank, "host:port".

    They are drawn shortly before the ranks start: another process may take a port in between, and then others are
    drawn.
    """

    by_rank: tuple[str, ...]

    @property
    def coordinator(self) -> str:
        return self.by_rank[0]


def draw_addresses(places: Sequence[Place]) -> Addresses:
    alone = all(place.is_here for place in places)
    found: list[str] = []
    held: list[socket.socket] = []  # until all are drawn, so that none is drawn twice
    with contextlib.ExitStack() as stack:
        for place in places:
            host = LOOPBACK if alone else place.name
            for _ in range(place.ranks):
                if place.is_here:
                    held.append(stack.enter_context(socket.create_server((LOOPBACK if alone else "", 0))))
                    port = held[-1].getsockname()[1]
                else:
                    port = random.choice(_PORTS_ELSEWHERE)
                found.append(f"{host}:{port}")
    return Addresses(tuple(found))


def conductor_host_for(place: Place) -> str:
    """Find the address of this machine that the host reaches."""
    if place.is_here:
        return LOOPBACK
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect((place.name, 9))  # sends nothing
        return str(towards.getsockname()[0])
    return socket.gethostname()


def listener_for(places: Sequence[Place]) -> socket.socket:
    alone = all(place.is_here for place in places)
    return socket.create_server((LOOPBACK if alone else "", 0), backlog=sum(place.ranks for place in places) + 8)


def cores_for(ranks: int, threads: int, available: Collection[int]) -> dict[str, str]:
    """Set the variable that gives the ranks their cores; none where there are too few cores."""
    if ranks * threads > len(available):
        return {}
    cores = sorted(available)
    own = [cores[number * threads : (number + 1) * threads] for number in range(ranks)]
    return {CORES: "/".join(",".join(map(str, each)) for each in own)}


def bind(rank: int) -> None:
    """Before anything starts threads, which inherit the cores."""
    own = cores_of(rank)
    if own:
        os.sched_setaffinity(0, own)


def cores_of(rank: int) -> list[int]:
    """Return the cores of a rank; none where it is not bound."""
    by_rank = os.environ.get(CORES, "")
    return [int(core) for core in by_rank.split("/")[rank].split(",")] if by_rank else []
