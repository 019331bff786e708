"""On how many threads, processes and hosts one unit of work runs.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec

from fairlap import quantity_text

E_SCALE = "E_SCALE"

Scaling = Literal["strong", "weak"]
"""What stays the same when ranks are added: the global batch (strong), or the batch of each rank (weak)."""


Collective = Literal["all_reduce", "all_gather", "broadcast"]
COLLECTIVES: tuple[Collective, ...] = get_args(Collective)

LOOPBACK = "127.0.0.1"
"""Where ranks meet that are all on this host."""


class Scale(msgspec.Struct, frozen=True):
    """Of a work that is raced at several scales. Its batch is the global one, whatever the scaling."""

    threads: int  # of each rank
    ranks: int = 1  # processes that share each step or batch
    scaling: Scaling = "strong"
    hosts: tuple[str, ...] = ()  # that the ranks are spread over, in turn; none for this machine

    @property
    def identity(self) -> Scale:
        """The scale itself: strong and weak scaling get to the same one."""
        return msgspec.structs.replace(self, scaling="strong")

    @property
    def text(self) -> str:
        """``2 ranks of 1 thread``, or ``2 threads`` where there is one rank."""
        threads = quantity_text.count(self.threads, "thread")
        if self.ranks == 1 and not self.hosts:
            return threads
        hosts = f" on {', '.join(self.hosts)}" if self.hosts else ""
        return f"{quantity_text.count(self.ranks, 'rank')} of {threads}{hosts}"

    @property
    def most_on_a_host(self) -> int:
        """How many ranks run on one host; on hosts that the ranks are dealt out to, on the fullest."""
        return math.ceil(self.ranks / max(len(self.hosts), 1))

    @property
    def cores(self) -> int:
        """That all ranks together have work for."""
        return self.threads * self.ranks

    def why_not_on(self, cores: int) -> str:
        """Why so many cores of this machine are too few; empty where they are not."""
        if self.cores <= cores:
            return ""
        return f"{self.text} need {quantity_text.count(self.cores, 'core')}, and this process has {cores}"


class Rank(msgspec.Struct, frozen=True):
    """One of the processes that share a step. Its inputs are its own part of the global batch."""

    number: int  # from 0
    count: int
    coordinator: str  # "host:port", where the ranks of a framework find each other: at the first of the addresses
    addresses: tuple[str, ...] = ()  # "host:port" by rank, free for the framework to listen at
