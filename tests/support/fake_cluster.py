"""A cluster in this process, whose machines make up the results of blocks; nodes come, go, and are lost on request."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence

import msgspec
from fairlap.launch.cluster.cluster import Ended, Node
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.store.tables import stored_process
from fairlap.sweep.block import BlockReport, BlockTask
from fairlap.sweep.machine_here import Machine
from fairlap.version import __version__
from runs_for_rows import MACHINE, a_process
from runs_in_store import samples_of

Answer = Callable[[Node, BlockTask], BlockReport | None]
"""None: the node never answers, until it is lost."""


def a_machine(name: str, **changes: object) -> Machine:
    made = Machine(name, f"host of {name}", (0, 1), dict(MACHINE), __version__, platform.python_version())
    return msgspec.structs.replace(made, **changes)


def a_plan(blocks: int = 20, threads: int = 1) -> Plan:
    return draw_plan(
        Contestants("torch,jax:fast"),
        (Work("mlp", 4),),
        blocks=blocks,
        conditions="controlled",
        threads=threads,
        available_cores=tuple(range(threads)),
        seed=1,
    )


def measured(_node: Node, task: BlockTask) -> BlockReport:
    [block] = (each for each in task.plan.blocks if each.number == task.block)
    processes = [
        a_process(block.number, task.plan.contestants[place].text, 2e6 / (place + 1), task.plan.works[block.work])
        for place in block.order
    ]
    stored = tuple(stored_process(process, samples_of(process)) for process in processes)
    return BlockReport(stored, {"whole": 2.0, "frameworks": 1.5})


class FakeCluster:
    """``begun`` has the node and the block of every task that was handed out."""

    def __init__(self, machines: Mapping[str, Machine], answer: Answer = measured, mute: Sequence[str] = ()) -> None:
        self.mute = mute  # nodes that never say what they are
        self._machines = dict(machines)
        self._answer = answer
        self._asked: dict[int, Node] = {}
        self._running: dict[int, tuple[Node, BlockTask]] = {}
        self._lost: list[int] = []
        self.begun: list[tuple[str, int]] = []
        self._last = 0

    def nodes(self) -> Sequence[Node]:
        return [Node(node, machine.name) for node, machine in self._machines.items()]

    def ask(self, node: Node) -> int:
        self._last += 1
        if node.id in self.mute:
            return self._last
        if node.id in self._machines:
            self._asked[self._last] = node
        else:
            self._lost.append(self._last)
        return self._last

    def start(self, node: Node, task: bytes) -> int:
        self._last += 1
        if node.id not in self._machines:
            self._lost.append(self._last)
            return self._last
        hosts = [self._machines[other.id].host for other, _ in self._running.values()]
        assert self._machines[node.id].host not in hosts, "a machine measures one block at a time"
        found = msgspec.msgpack.decode(task, type=BlockTask)
        self._running[self._last] = (node, found)
        self.begun.append((node.id, found.block))
        return self._last

    def ended(self, within_s: float) -> Sequence[Ended]:
        found = [Ended(ticket, lost="the node is gone") for ticket in self._lost]
        self._lost = []
        found += [
            Ended(ticket, msgspec.msgpack.encode(self._machines[node.id])) for ticket, node in self._asked.items()
        ]
        self._asked = {}
        for ticket, (node, task) in list(self._running.items()):
            report = self._answer(node, task)
            if ticket in self._running and report is not None:
                del self._running[ticket]
                found.append(Ended(ticket, msgspec.msgpack.encode(report)))
        return found

    def close(self) -> None:
        return None

    def add(self, node: str, machine: Machine) -> None:
        self._machines[node] = machine

    def lose(self, node: str) -> None:
        del self._machines[node]
        self._lose_tasks_of(node)

    def crash(self, node: str) -> None:
        """Lose the task, and keep the node."""
        self._lose_tasks_of(node)

    def _lose_tasks_of(self, node: str) -> None:
        for ticket, (where, _) in list(self._running.items()):
            if where.id == node:
                del self._running[ticket]
                self._lost.append(ticket)
