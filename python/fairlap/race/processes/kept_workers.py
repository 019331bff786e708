"""Workers that have done one work and take the next: frozen in between, and ended as soon as they have no other.

Each does the works of its contestant in the blocks that the plan gives it, in their order. One that was lost, or whose
contestant was disqualified, is not kept; the works that it had not done get a new one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.meters.memory import INSTALLED, LAYERS, Memory, memory_of
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.planning.shared_processes import starts_processes, why_fresh
from fairlap.race.processes.block_worker import environment_of
from fairlap.scenarios.process_result import NOT_ITS_FIRST, ProcessResult
from fairlap.worker.protocol import Drop, Ended

_RESIDENT = ("anonymous", "file", "shared")


@dataclass(frozen=True)
class _Kept:
    worker: WorkerProcess
    started_as: tuple[object, ...]
    works: int


class KeptWorkers:
    """Of one race. At most one for each contestant."""

    def __init__(self, plan: Plan) -> None:
        # A plan from elsewhere may share what this fairlap does not.
        shared = () if why_fresh(plan) else plan.blocks
        self.plan = plan
        self.kept: dict[str, _Kept] = {}
        self.fresh = False  # contestants neither take a kept one in this block nor leave one
        self.lacks_one = False  # a contestant lost its worker, so that all get new ones
        self._last_blocks = {starts_processes(block): block.number for block in shared}
        self._processes_of = -1

    @property
    def are_used(self) -> bool:
        """Whether those that wait take the work of this block."""
        return bool(self.kept) and not self.fresh

    def begin(self, block: Block, *, fresh: bool) -> None:
        """End those that have no work in this block, and those whose rivals would have new ones."""
        if self.lacks_one or self._processes_of != starts_processes(block):
            self.end_all()
        self.fresh, self._processes_of = fresh, starts_processes(block)

    def use(self, block: Block, runner: Runner, result: ProcessResult) -> WorkerUse:
        return WorkerUse(self, block, runner, result)

    def go_on_after(self, block: Block) -> bool:
        """Whether a block to come has another work for its processes."""
        return not self.fresh and block.number < self._last_blocks.get(starts_processes(block), block.number)

    def held_bytes(self, contestant: str) -> int:
        """Count what the worker holds that takes its next work."""
        kept = self.kept.get(contestant) if self.are_used else None
        resident = {} if kept is None else memory_of(kept.worker.pid)
        return sum(resident.get(layer, 0) for layer in _RESIDENT)

    def end_all(self) -> None:
        while self.kept:
            self.kept.popitem()[1].worker.end()
        self.lacks_one = False


class WorkerUse:
    """How the worker of one contestant in a block gets its work, and what becomes of it afterwards."""

    def __init__(self, workers: KeptWorkers, block: Block, runner: Runner, result: ProcessResult) -> None:
        self._workers, self._block, self._result = workers, block, result
        self._started_as = (
            runner.command,
            runner.container,
            environment_of(block, runner),
            runner.cores(block.cores),
        )
        self._was_dropped = False

    def kept(self) -> WorkerProcess | None:
        """Take the one that waits for this work; None where a new one is needed, which would be started otherwise."""
        name = self._result.contestant
        found = self._workers.kept.get(name)
        if found is None or self._workers.fresh or found.started_as != self._started_as:
            return None
        del self._workers.kept[name]
        self._result.works_before = found.works
        found.worker.phases_s = {}
        return found.worker

    def wake(self, worker: WorkerProcess) -> None:
        """Continue it, or wait for the first message of a new one."""
        if self._result.works_before:
            worker.thaw()
        else:
            worker.greet()

    def finish(self, worker: WorkerProcess) -> Ended:
        """End its work, and the worker too unless it has another one to do."""
        workers = self._workers
        if workers.go_on_after(self._block):
            ended = Ended(worker.ask(Drop(), within_s=workers.plan.limits.answer_s).memory)
            self._was_dropped = True
        else:
            ended = worker.quit()
        if not self._result.works_before:
            return ended
        kept = {name: size for name, size in ended.memory.bytes.items() if name == INSTALLED}
        # Earlier works left memory, and their peak.
        return Ended(Memory(kept, {name: NOT_ITS_FIRST for name in LAYERS if name not in kept}))

    def keep_or_end(self, worker: WorkerProcess) -> None:
        """Freeze it until its next work, if its contestant did this one as asked."""
        if self._was_dropped and self._result.finished:
            with suppress(WorkerLost):  # this work is done
                worker.freeze()
                works = self._result.works_before + 1
                self._workers.kept[self._result.contestant] = _Kept(worker, self._started_as, works)
                return
        worker.end()
        self._workers.lacks_one = self._workers.lacks_one or self._workers.go_on_after(self._block)
