"""Running a plan: block after block, each process kept as soon as its block, or its own turn, has ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fairlap.interrupts import signals_wait
from fairlap.launch.runners import Runner, runners_for
from fairlap.machine.files.scratch_folder import ScratchFolder, remove_abandoned
from fairlap.machine.hardware.locked_clocks import locked_clocks
from fairlap.machine.hardware.matrix_threads import one_thread_for_matrices
from fairlap.meters.energy import idle_power
from fairlap.models.array_files.safetensors import NotWritten
from fairlap.race.around_blocks.after_blocks import AfterBlocks, Findings, Keep
from fairlap.race.equal_work.answers import Agreement
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.material_sources import (
    materials_for,
    require_room_for_weights,
    with_own_bounds,
    without_route,
)
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.scores import Scores
from fairlap.race.left_out import contestants_of
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.planning.plan_file import require_complete
from fairlap.race.processes.at_scale import in_turn_because_of_ranks, runs_as_ranks
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.block_worker import TEMPORARY
from fairlap.race.processes.chosen_rounds import rounds_of
from fairlap.race.processes.contained import with_paths
from fairlap.race.processes.counted_allocations import counting, require_countable
from fairlap.race.processes.kept_workers import KeptWorkers
from fairlap.race.processes.one_process import ProcessRun
from fairlap.race.processes.repeated_processes import RepeatedProcesses
from fairlap.race.processes.turns import NoRoom, run_alone, run_in_rounds
from fairlap.race.progress import Messages, Progress
from fairlap.race.scenario_side import race_sides
from fairlap.race.stopping import Ending
from fairlap.request.work import Work
from fairlap.scenarios.process_result import CompileCaches, ProcessResult, Started

_LONG_COMPILATION_S = 1.0
"""A contestant that compiles for longer starts its second process alone, to see what its caches save."""


class Race:
    """One run of a plan. ``processes`` grows while it runs and holds whatever ended when it was interrupted.

    ``resumed`` are the whole blocks of an earlier, interrupted run of the same plan, which are not run again. ``kept``
    is what scenarios keep from one process to the next, by its type; they make what is missing. Into ``findings`` goes
    what is found after the blocks; it has what the earlier run had found. Processes that still run at ``ends_by_s``, on
    the clock of ``time.monotonic``, end there.
    """

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        ending: Ending | None = None,
        keep: Keep = lambda _process, _samples: None,
        resumed: Sequence[ProcessResult] = (),
        kept: Mapping[type, Any] | None = None,
        findings: Findings | None = None,
        ends_by_s: float = math.inf,
    ) -> None:
        require_complete(plan)
        self.plan = plan
        self._ends_by_s = ends_by_s
        self.ended_early = self.data_lost = ""
        self._ending = ending
        self._keep = keep
        self.processes = list(resumed)
        self.scores = Scores(resumed)
        self._progress = progress or Messages()
        self._kept = dict(kept or {})
        self._began_s = time.monotonic()
        self._elapsed_s = 0.0
        self._in_frameworks_s = 0.0
        self._materials: dict[tuple[Work, int], Materials] = {}
        self._compiled: set[tuple[str, str]] = set()  # contestants and works whose caches on disk are filled
        self._repeated = RepeatedProcesses(self._progress.say, self._may_go_on)
        self._in_turn_because = plan.in_turn_because or in_turn_because_of_ranks(plan)
        self.findings = findings or Findings()
        self._after_blocks = AfterBlocks(plan, self.processes, self.findings, self._materials_of, keep, self._progress)

    @property
    def doing(self) -> str:
        """What is under way after the blocks; empty before."""
        return self._after_blocks.doing

    def run(self, after_block: Callable[[], object] = lambda: None) -> None:
        """Make ready what every contestant is handed, then run block after block."""
        for _ in self.in_blocks(after_block):
            pass

    def in_blocks(self, after_block: Callable[[], object] = lambda: None) -> Generator[None]:
        """Run it, and stop after each block until the next one is wanted, so that races may share a machine in turns.

        Close it for a race that is not run to its end; of several, the one that began last first.
        """
        with ExitStack() as stack:
            try:
                scratch = self._scratch_in(stack)
                stack.enter_context(one_thread_for_matrices())
                first = self.plan.data_seeds[0] if self.plan.blocks else 0
                works = [self._materials_of(work.in_precision(None), first) for work in self.plan.works]
                if self.plan.device == "cpu":
                    require_room_for_weights(self.plan.contestants, works)
                require_countable(self.plan)
                for side in race_sides():
                    side.require_plan(self.plan, works)
                feeding = stack.enter_context(Feeding(self.plan, works))
                runners_began_s = time.monotonic()
                runners = runners_for(
                    self.plan.contestants,
                    self.plan.threads,
                    self.plan.device,
                    scratch / "caches",
                    stack,
                    self._progress.announce,
                    without_route(self.plan.contestants, works),
                    self.plan.precisions,
                    self.plan.pass_env,
                )
                runners = with_paths(counting(runners, self.plan), self.plan, self._materials_of)
                self._began_s = time.monotonic()
                if self._ending is not None:
                    self._ending.leave_out(self._began_s - runners_began_s)
                stack.enter_context(locked_clocks(self.plan.all_devices, self.plan.lock_clocks))
                sensed = idle_power(self.plan.all_devices, self._progress.announce)
                bench = Bench(
                    scratch,
                    Agreement(scratch),
                    sensed,
                    feeding,
                    self.scores,
                    KeptWorkers(self.plan),
                    self._may_go_on,
                    of_scenarios=self._kept,
                    longest_request_s=math.inf if self._ending is None else self._ending.longest_request_s,
                    goes_on=self._progress.goes_on,
                    ends_by_s=self._ends_by_s,
                )
                stack.callback(bench.kept_workers.end_all)
                ran = {process.block for process in self.processes}
                for number, block in enumerate(self.plan.blocks, start=1):
                    if block.number in ran:
                        continue
                    try:
                        with one_thread_for_matrices():  # of libraries that were loaded since, too
                            self._run_block(block, runners, bench)
                    except NotWritten as full:  # what was measured before is kept
                        self.data_lost = str(full)
                    self._progress.block_over(self.processes)
                    after_block()
                    self.ended_early = self.data_lost
                    if not self.data_lost and self._ending is not None and number < len(self.plan.blocks):
                        behind = self.plan.blocks[:number]
                        kept = sum(each.number in ran for each in behind)
                        self.ended_early = self._ending.reason(behind, self.processes, kept)
                    if self.ended_early:
                        break
                    yield
                if not self.data_lost:
                    self._after_blocks.run(runners, bench, after_block)
                    self.data_lost = self._after_blocks.data_lost
                    self.ended_early = self.data_lost or self.ended_early
            finally:
                self._elapsed_s = time.monotonic() - self._began_s

    def _scratch_in(self, stack: ExitStack) -> Path:
        remove_abandoned()
        stack.callback(remove_abandoned)  # of workers that were killed
        scratch = stack.enter_context(ScratchFolder())
        if not any(map(runs_as_ranks, self.plan.works)):
            (scratch / TEMPORARY).mkdir()  # not for ranks, whose sockets have short paths
        return scratch

    def _may_go_on(self) -> bool:
        return self._ending is None or not self._ending.ends_first_block()

    def _materials_of(self, work: Work, data_seed: int) -> Materials:
        key = (work, data_seed)
        if key not in self._materials:
            self._materials[key] = materials_for(work, data_seed, self._progress.announce, self.plan.pass_env)
        return self._materials[key]

    def _run_block(self, block: Block, runners: list[Runner], bench: Bench) -> None:
        # Before anything is timed: they may have to be drawn, and a reference computed.
        materials = [
            with_own_bounds(
                self.plan.contestants[place],
                self._materials_of(self.plan.work_of(block, place), block.data_seed),
            )
            for place in block.order
        ]
        by_place = dict(zip(block.order, materials, strict=True))
        began_s = time.monotonic()
        runs_of = partial(self._runs_of, block, by_place, runners, bench)
        if not self._in_turn_because:
            try:
                runs = self._run_in_rounds(runs_of, block, bench.kept_workers)
            except NoRoom as full:
                self._in_turn_because = str(full)
                self._progress.say(f"{full}; they run one after the other from here on")
        if self._in_turn_because:
            bench.kept_workers.begin(block, fresh=True)
            bench.kept_workers.end_all()
            runs = self._run_one_by_one(runs_of, bench)
        in_frameworks_s = sum(run.result.in_framework_s for run in runs)
        self._in_frameworks_s += min(in_frameworks_s, time.monotonic() - began_s)

    def _runs_of(
        self, block: Block, materials: Mapping[int, Materials], runners: list[Runner], bench: Bench
    ) -> list[ProcessRun]:
        began_s = time.monotonic() - self._began_s
        work_id = self.plan.works[block.work].id
        still_in = contestants_of(self.plan, block, self.processes)
        places = [place for place in block.order if self.plan.contestants[place].text in still_in]
        return [
            ProcessRun(
                ProcessResult(
                    block=block.number,
                    position=position,
                    contestant=runners[place].name.text,
                    work_id=work_id,
                    conditions=block.conditions,
                    data_seed=block.data_seed,
                    started=self._started(block, runners[place].name.text, work_id),
                    caches=self._caches_of(runners[place], work_id),
                    hash_seed=block.hash_seed,
                    padding_bytes=block.padding_bytes,
                    cores=runners[place].cores(block.cores),
                    began_s=began_s,
                ),
                block,
                self.plan,
                materials[place],
                runners[place],
                bench,
            )
            for position, place in enumerate(places)
        ]

    def _started(self, block: Block, name: str, work_id: str) -> Started:
        return "alone" if self._compiles_again(name, work_id) else block.started

    def _compiles_again(self, name: str, work_id: str) -> bool:
        before = [
            each for each in self.processes if (each.contestant, each.work_id) == (name, work_id) and each.finished
        ]
        return len(before) == 1 and (before[0].compile_s() or 0.0) >= _LONG_COMPILATION_S

    def _caches_of(self, runner: Runner, work_id: str) -> CompileCaches:
        return "warm" if (runner.name.text, work_id) in self._compiled else "cold"

    def _run_in_rounds(
        self, runs_of: Callable[[], list[ProcessRun]], block: Block, workers: KeptWorkers
    ) -> list[ProcessRun]:
        """With the workers of the works before it, where it has some; what does not finish in them gets new ones."""
        workers.begin(block, fresh=self._is_fresh(block))
        while True:
            runs, are_used = runs_of(), workers.are_used
            try:
                self._take_rounds(runs, block, workers)
                if not any(run.result.works_before and not run.result.finished for run in runs):
                    break
            except NoRoom:
                if not are_used:
                    raise
            workers.end_all()
        with signals_wait():  # a block is kept whole
            for run in runs:
                self._keep_run(run)
        return runs

    def _is_fresh(self, block: Block) -> bool:
        """Whether it has new processes whatever the plan says, since a contestant compiles again or failed before."""
        work_id = self.plan.works[block.work].id
        compiles = any(self._compiles_again(name.text, work_id) for name in self.plan.contestants)
        return compiles or any(
            each.work_id == work_id and not each.finished and each.phases_s for each in self.processes
        )

    def _take_rounds(self, runs: list[ProcessRun], block: Block, workers: KeptWorkers) -> None:
        for run in runs:
            self._progress.began(run.result)
        rounds = rounds_of(self.plan, block, self.processes)
        run_in_rounds(runs, self.plan, block, rounds, self._known_bytes(workers), self._may_go_on)
        if self.plan.limits.memory_bytes is None and any(run.result.outcome == "out_of_memory" for run in runs):
            raise NoRoom("memory ran out while the contestants of a block were alive together")

    def _run_one_by_one(self, runs_of: Callable[[], list[ProcessRun]], bench: Bench) -> list[ProcessRun]:
        runs = runs_of()
        for place, first in enumerate(runs):
            self.data_lost = bench.feeding.lost()
            if self.data_lost:  # every process to come would fail in the same way
                return runs
            run = runs[place] = self._repeated.undisturbed(
                first, self._run_alone, partial(self._another, runs_of, place)
            )
            self.data_lost = "" if run.result.finished else bench.feeding.lost()
            if self.data_lost:  # it says nothing about this contestant: the block is broken off here
                return runs
            with signals_wait():
                self._keep_run(run)
        return runs

    def _another(self, runs_of: Callable[[], list[ProcessRun]], place: int) -> ProcessRun:
        """Make a process in place of one that does not count, which has filled the caches of compilers all the same."""
        before = runs_of()[place].result
        self._compiled.add((before.contestant, before.work_id))
        return runs_of()[place]

    def _run_alone(self, run: ProcessRun) -> None:
        run.result.began_s = time.monotonic() - self._began_s
        run.result.started, run.result.in_turn_because = "alone", self._in_turn_because
        self._progress.began(run.result)
        run_alone(run)

    def _keep_run(self, run: ProcessRun) -> None:
        result = run.result
        if result.finished:
            self._compiled.add((result.contestant, result.work_id))
        self.processes.append(result)
        self._keep(result, run.samples)
        self._progress.ended(len(self.processes), result)

    def _known_bytes(self, workers: KeptWorkers) -> dict[str, int]:
        """Find the most that each contestant has held in a process of this race, beyond what one holds that waits."""
        known: dict[str, int] = {}
        for process in self.processes:
            peak = process.memory.bytes.get("peak", 0)
            known[process.contestant] = max(known.get(process.contestant, 0), peak)
        return {name: max(peak - workers.held_bytes(name), 0) for name, peak in known.items() if peak}

    def shares(self) -> dict[str, float]:
        """Where the wall time went: into the frameworks (import, build, warm-up, measured calls), and into fairlap."""
        whole_s = self._elapsed_s or time.monotonic() - self._began_s
        return {"whole": whole_s, "frameworks": self._in_frameworks_s, "fairlap": whole_s - self._in_frameworks_s}
