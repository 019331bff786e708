"""What a sweep needs of a cluster: its nodes, to ask each what it is, and to run one block at a time on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Node(msgspec.Struct, frozen=True):
    """``id`` is another one when the node starts again; ``name`` is for people."""

    id: str
    name: str


class Ended(msgspec.Struct, frozen=True):
    """The answer to a ticket, or why there is none and never will be."""

    ticket: int
    answer: bytes = b""
    lost: str = ""


class Cluster(Protocol):
    """``ask`` and ``start`` return tickets. Nothing is handed out twice by the cluster itself."""

    def nodes(self) -> Sequence[Node]:
        """Those that are there now."""
        ...

    def ask(self, node: Node) -> int:
        """Ask the node for an encoded ``Machine``, which may come while the node is busy."""
        ...

    def start(self, node: Node, task: bytes) -> int:
        """Start an encoded ``BlockTask``, answered by a ``BlockReport``; the node does nothing else meanwhile."""
        ...

    def ended(self, within_s: float) -> Sequence[Ended]:
        """Each once; returns early when there is one."""
        ...

    def close(self) -> None:
        """End what is running, and all that was started for this cluster."""
        ...
