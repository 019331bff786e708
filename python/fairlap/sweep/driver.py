"""Dealing the blocks of a sweep out to machines, each to one at a time, until all are stored.

The store decides what is done: a block is stored in one transaction, once. A block whose node is lost is dealt out
again; what is missing when this process ends is what `--resume` runs.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.interrupts import signals_wait
from fairlap.launch.cluster.cluster import Cluster, Ended, Node
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import on_cores
from fairlap.store.errors import StoreError
from fairlap.store.file_store import Store
from fairlap.store.sweeps import NewRun, RunOfSweep, Spread, Sweep, begin_sweep, end_run_of_sweep, store_block
from fairlap.sweep.block import BlockReport, BlockTask
from fairlap.sweep.machine_here import Machine
from fairlap.sweep.machines import Machines
from fairlap.sweep.requests import CODE

_LOOK_EVERY_S = 1.0
_MOST_LOSSES = 3  # of one block, which may be what takes its nodes down


def key_of(machine: Machine, spread: Spread) -> str:
    """Machines with the same key may share a run."""
    return machine.kind if spread == "alike" else f"{machine.kind}@{machine.name}"


def begin(
    store: Store, plans: Mapping[str, Plan], machines: Machines, spread: Spread, report: Callable[[str], None]
) -> Sweep:
    """Begin a run for each plan on each kind of machine, or on each machine; one that lacks the cores has none."""
    firsts: dict[str, Machine] = {}
    for machine in machines.known():
        firsts.setdefault(key_of(machine, spread), machine)
    runs: list[NewRun] = []
    refused: list[str] = []
    for request, plan in plans.items():
        for key, machine in firsts.items():
            try:
                runs.append(NewRun(request, key, on_cores(plan, machine.cores), machine.facts))
            except InvalidRequest as error:
                refused.append(f"{machine.name} cannot run {request}: {error}")
    *reported, last = refused or ["no machine of the cluster can take part"]
    for line in refused if runs else reported:
        report(line)
    if not runs:
        raise InvalidRequest(last, code=CODE)
    return begin_sweep(store, spread, datetime.now(UTC).isoformat(timespec="seconds"), runs)


@dataclass
class Open:
    """A run with the blocks that wait. ``refusals`` has why a node cannot run its plan, by the node's name."""

    run: RunOfSweep
    waiting: deque[int]
    losses: Counter[int] = field(default_factory=Counter)
    refusals: dict[str, str] = field(default_factory=dict)
    refused_by: set[str] = field(default_factory=set)  # ids of nodes
    is_over: bool = False  # all blocks are stored, and what follows from them
    interrupted: bool = False

    @property
    def why_incomplete(self) -> str:
        if not self.run.missing:
            return ""
        if self.interrupted:
            return "interrupted"
        if self.refusals:
            return "; ".join(f"{name}: {why}" for name, why in self.refusals.items())
        if given_up := [block for block, count in self.losses.items() if count >= _MOST_LOSSES]:
            return f"block {given_up[0]} lost its node {_MOST_LOSSES} times"
        return "no machine that may run it is there"


@dataclass(frozen=True)
class _Running:
    node: Node
    machine: Machine
    open: Open
    block: int


@dataclass(frozen=True)
class _Measured:
    running: _Running
    report: BlockReport


class Driver:
    """``stored`` is called after each block with the run and the block's report."""

    def __init__(
        self,
        sweep: Sweep,
        cluster: Cluster,
        machines: Machines,
        store: Store,
        report: Callable[[str], None],
        stored: Callable[[RunOfSweep, int, BlockReport], None] = lambda *_: None,
    ) -> None:
        self.sweep, self._cluster, self._machines, self._store = sweep, cluster, machines, store
        self._report, self._stored = report, stored
        self.runs = [Open(run, deque(run.missing)) for run in sweep.runs]
        self._running: dict[int, _Running] = {}
        self._unstored: deque[_Measured] = deque()
        self._trouble = ""

    def run(self) -> None:
        """Run until every block is stored, or no machine can run what is missing.

        A store that cannot be written is tried again after each block; its error is raised at the end.
        """
        try:
            self._run()
        except KeyboardInterrupt:
            for each in self.runs:
                each.interrupted = True
            self._write()
            raise
        self._write(last=True)

    def _run(self) -> None:
        for each in self.runs:
            self._end_if_complete(each)  # one whose last block was stored when an earlier process was killed
        looked_s = -_LOOK_EVERY_S
        while any(each.run.missing for each in self.runs):
            if time.monotonic() - looked_s >= _LOOK_EVERY_S:
                self._machines.look()
                looked_s = time.monotonic()
            self._deal_out()
            if not self._running and not self._machines.being_asked:
                break
            for ended in self._cluster.ended(_LOOK_EVERY_S):
                if not self._machines.take(ended):
                    self._take(ended)

    @property
    def done(self) -> int:
        return sum(len(each.run.hosts) for each in self.runs)

    @property
    def blocks(self) -> int:
        return sum(len(each.run.plan.blocks) for each in self.runs)

    @property
    def counted(self) -> str:
        return f"{self.done} of {quantity_text.count(self.blocks, 'block')}"

    def _deal_out(self) -> None:
        busy = {running.machine.host for running in self._running.values()}
        for node, machine in self._machines.free(busy):
            found = next(self._open_to(node, machine), None)
            if found is not None:
                block = found.waiting.popleft()
                began_s = (datetime.now(UTC) - datetime.fromisoformat(found.run.began_at)).total_seconds()
                task = BlockTask(found.run.plan, block, max(began_s, 0.0))
                ticket = self._cluster.start(node, msgspec.msgpack.encode(task))
                self._running[ticket] = _Running(node, machine, found, block)

    def _open_to(self, node: Node, machine: Machine) -> Iterator[Open]:
        key = key_of(machine, self.sweep.machines)
        return (
            each for each in self.runs if each.waiting and each.run.machine == key and node.id not in each.refused_by
        )

    def _take(self, ended: Ended) -> None:
        running = self._running.pop(ended.ticket, None)
        if running is None:
            return
        where, each = f"block {running.block} of {running.open.run.request} on {running.node.name}", running.open
        if ended.lost:
            self._machines.ask_again(running.node)
            each.losses[running.block] += 1
            again = each.losses[running.block] < _MOST_LOSSES
            self._report(f"lost {where}: {ended.lost}{'; it is run again' if again else ''}")
            if again:
                each.waiting.appendleft(running.block)
            return
        report = msgspec.msgpack.decode(ended.answer, type=BlockReport)
        if report.code:
            self._report(f"{running.node.name} cannot run {each.run.request}: {report.message} [{report.code}]")
            each.refusals[running.node.name] = report.message
            each.refused_by.add(running.node.id)
            each.waiting.appendleft(running.block)
            return
        self._unstored.append(_Measured(running, report))
        with signals_wait():
            self._write()

    def _write(self, *, last: bool = False) -> None:
        """All that is measured and not stored yet."""
        try:
            if self._trouble and self._unstored:
                self._store.reconnect()
            while self._unstored:
                self._write_one(self._unstored[0])
                self._end_if_complete(self._unstored.popleft().running.open)
            self._trouble = ""
        except StoreError as error:
            if last:
                raise
            if not self._trouble:
                self._report(f"cannot write to the store; trying again after every block: {error}")
            self._trouble = str(error)

    def _write_one(self, measured: _Measured) -> None:
        running, report = measured.running, measured.report
        run, host = running.open.run, running.machine.name
        if not store_block(self._store, run.run, running.block, host, report.processes, report.wall_s, report.roofs):
            self._report(f"block {running.block} of {run.request} is stored already; this result of it is dropped")
        run.hosts[running.block] = host
        self._stored(run, running.block, report)

    def _end_if_complete(self, each: Open) -> None:
        if not each.run.missing and not each.is_over:
            end_run_of_sweep(self._store, each.run.run)
            each.is_over = True
