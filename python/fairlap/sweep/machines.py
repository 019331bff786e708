"""The machines of a cluster: asked what they are when they come, forgotten when they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import msgspec

from fairlap.launch.cluster.cluster import Cluster, Ended, Node
from fairlap.sweep.machine_here import Machine, why_not_usable

ANSWER_WITHIN_S = 60.0
_LOOK_EVERY_S = 1.0


class Machines:
    """``left_out`` has the reason for each node, by its name, that takes no part."""

    def __init__(
        self, cluster: Cluster, report: Callable[[str], None], answer_within_s: float = ANSWER_WITHIN_S
    ) -> None:
        self._cluster, self._report, self._answer_within_s = cluster, report, answer_within_s
        self._known: dict[str, Machine] = {}
        self._asked: dict[int, tuple[Node, float]] = {}  # and until when
        self._seen: set[str] = set()
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
            if node_id in self._nodes and machine.host not in busy:
                found.setdefault(machine.host, (self._nodes[node_id], machine))
        return list(found.values())

    def look(self) -> None:
        """Ask those that are new, and leave out those that have not answered in time."""
        self._nodes = {node.id: node for node in self._cluster.nodes()}
        for node in self._nodes.values():
            if node.id not in self._seen:
                self._seen.add(node.id)
                self._ask(node)
        for ticket, (node, deadline_s) in list(self._asked.items()):
            if time.monotonic() > deadline_s:
                del self._asked[ticket]
                self._leave_out(node, f"it did not answer within {self._answer_within_s:g} seconds")

    def wait_for_all(self) -> None:
        """For those that are there now to answer, or to be left out."""
        self.look()
        while self._asked:
            for ended in self._cluster.ended(_LOOK_EVERY_S):
                self.take(ended)
            self.look()

    def _ask(self, node: Node) -> None:
        self._asked[self._cluster.ask(node)] = (node, time.monotonic() + self._answer_within_s)

    def take(self, ended: Ended) -> bool:
        """Take an answer; return False for an answer to something else."""
        if ended.ticket not in self._asked:
            return False
        node, _ = self._asked.pop(ended.ticket)
        if ended.lost:
            self._leave_out(node, ended.lost)
            return True
        machine = msgspec.msgpack.decode(ended.answer, type=Machine)
        if why := why_not_usable(machine):
            self._leave_out(node, why)
            return True
        if machine.niceness > 0:
            self._report(
                f"blocks on {node.name} run with niceness {machine.niceness}, so that other processes come first;"
                " start Ray there with RAY_worker_niceness=0"
            )
        self._known[node.id] = machine
        return True

    def ask_again(self, node: Node) -> None:
        """After a loss: a node that is gone may still be listed, and gets nothing until it answers."""
        self._known.pop(node.id, None)
        self._ask(node)

    def _leave_out(self, node: Node, why: str) -> None:
        if node.name not in self.left_out:
            self._report(f"{node.name} is left out: {why}")
        self.left_out[node.name] = why
