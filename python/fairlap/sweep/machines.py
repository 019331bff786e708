"""The machines of a cluster: asked what they are when they come, forgotten when they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import msgspec

from fairlap.sweep.cluster import Cluster, Ended, Node
from fairlap.sweep.machine_here import Machine, why_not_usable

_REST_S = 3.0  # after a loss: a node that is gone may be listed a little longer


class Machines:
    """``left_out`` has the reason for each node, by its name, that takes no part."""

    def __init__(self, cluster: Cluster, report: Callable[[str], None]) -> None:
        self._cluster, self._report = cluster, report
        self._known: dict[str, Machine] = {}
        self._asked: dict[int, Node] = {}
        self._seen: set[str] = set()
        self._rests_until_s: dict[str, float] = {}
        self._nodes: dict[str, Node] = {}
        self.left_out: dict[str, str] = {}

    @property
    def being_asked(self) -> bool:
        return bool(self._asked)

    def known(self) -> list[Machine]:
        return [machine for node, machine in self._known.items() if node in self._nodes]

    def free(self, busy: Collection[str]) -> list[tuple[Node, Machine]]:
        """Those on which a block can begin, one for each host; ``busy`` are hosts."""
        found: dict[str, tuple[Node, Machine]] = {}
        for node_id, machine in self._known.items():
            rested = self._rests_until_s.get(node_id, 0.0) <= time.monotonic()
            if node_id in self._nodes and rested and machine.host not in busy:
                found.setdefault(machine.host, (self._nodes[node_id], machine))
        return list(found.values())

    @property
    def resting(self) -> bool:
        now = time.monotonic()
        return any(until > now for node, until in self._rests_until_s.items() if node in self._nodes)

    def look(self) -> None:
        """Ask those that are new."""
        self._nodes = {node.id: node for node in self._cluster.nodes()}
        for node in self._nodes.values():
            if node.id not in self._seen:
                self._seen.add(node.id)
                self._asked[self._cluster.ask(node)] = node

    def wait_for_all(self, within_s: float) -> None:
        """For those that are there now to answer; what does not is left out."""
        deadline_s = time.monotonic() + within_s
        self.look()
        while self._asked and time.monotonic() < deadline_s:
            for ended in self._cluster.ended(max(0.0, min(1.0, deadline_s - time.monotonic()))):
                self.take(ended)
        for node in self._asked.values():
            self._leave_out(node, f"it did not answer within {within_s:g} seconds")

    def take(self, ended: Ended) -> bool:
        """False for an answer to something else."""
        node = self._asked.pop(ended.ticket, None)
        if node is None:
            return False
        if ended.lost:
            self._leave_out(node, ended.lost)
            return True
        machine = msgspec.msgpack.decode(ended.answer, type=Machine)
        if why := why_not_usable(machine):
            self._leave_out(node, why)
        else:
            self._known[node.id] = machine
        return True

    def rest(self, node: Node) -> None:
        """Give it nothing for a while, and see whether it is still there."""
        self._rests_until_s[node.id] = time.monotonic() + _REST_S
        self.look()

    def _leave_out(self, node: Node, why: str) -> None:
        if node.name not in self.left_out:
            self._report(f"{node.name} is left out: {why}")
        self.left_out[node.name] = why
