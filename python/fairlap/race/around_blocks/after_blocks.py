"""What a race does when its blocks have run: it searches for limits and looks into contestants.

That happens in fresh processes that are in no block and in no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairlap import quantity_text
from fairlap.interrupts import signals_wait
from fairlap.launch.runners import Runner
from fairlap.launch.worker_process import Samples
from fairlap.race.around_blocks.compilation import Inspection
from fairlap.race.around_blocks.compilation_result import CompilationResult, still_to_inspect
from fairlap.race.around_blocks.largest_batch import largest_batch
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.around_blocks.profiles import Profiling, run_profiles
from fairlap.race.around_blocks.smallest_memory import Trial, smallest_memory
from fairlap.race.equal_work.material_sources import with_own_bounds
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.processes.at_scale import runner_for
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.block_worker import request_for
from fairlap.race.progress import Progress
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

Keep = Callable[[ProcessResult, Samples], None]
"""Called with every process as soon as it is complete, and again when something was added to it."""


@dataclass
class Findings:
    """What was found after the blocks, also by an interrupted run before this one, and where it goes."""

    profiles: list[ProfileResult] = field(default_factory=list)
    compilations: list[CompilationResult] = field(default_factory=list)
    keep_profile: Callable[[ProfileResult], None] = lambda _: None
    keep_compilation: Callable[[CompilationResult], None] = lambda _: None
    traces: Path | None = None  # the folder of the profilers' own traces


class AfterBlocks:
    """``doing`` says what is under way, for those who interrupt it."""

    def __init__(
        self,
        plan: Plan,
        processes: list[ProcessResult],
        findings: Findings,
        materials_of: Callable[[Work, int], Materials],
        keep: Keep,
        progress: Progress,
    ) -> None:
        self.doing = self.data_lost = ""
        self._plan, self._processes, self._findings = plan, processes, findings
        self._materials_of, self._keep, self._progress = materials_of, keep, progress

    def run(self, runners: Sequence[Runner], bench: Bench, after_each: Callable[[], object]) -> None:
        """All that the plan asks for; nothing after ``data_lost``, which says what happened to the data."""
        plan = self._plan
        for wanted, part in (
            (plan.min_memory or plan.max_batch, self._search),
            (plan.profile_processes, self._profile),
            (plan.recompiled_on, self._inspect_compilations),
        ):
            if wanted and not self.data_lost:
                part(runners, bench)
                after_each()

    def _search(self, runners: Sequence[Runner], bench: Bench) -> None:
        """For every contestant and work, under the headline's conditions; stored with its last finished process."""
        plan = self._plan
        for place, work in enumerate(plan.works):
            drawn = [each for each in plan.blocks if each.work == place]
            block = next((each for each in drawn if each.conditions == plan.headline), None)
            if block is None:
                continue
            for number, runner in enumerate(runner_for(each, plan, work) for each in runners):
                named = (runner.name.text, work.id, plan.headline)
                processes = [
                    process
                    for process in self._processes
                    if (process.contestant, process.work_id, process.conditions) == named
                ]
                process = next((process for process in reversed(processes) if process.finished), None)
                if process is None:
                    continue
                whole = self._materials_of(plan.work_of(block, number), plan.data_seeds[0])
                materials = with_own_bounds(runner.name, whole)
                request = request_for(plan, materials, runner)
                trial = Trial(plan, block, materials, runner, request, processes, bench.scratch, bench.feeding)
                if plan.min_memory and not any(each.smallest_memory for each in processes):
                    self._find_smallest_memory(trial, process)
                if self.data_lost:  # tries failed for lack of data, not of memory
                    return
                if plan.max_batch and not any(each.largest_batch for each in processes):
                    self._find_largest_batch(trial, process)

    def _find_smallest_memory(self, trial: Trial, process: ProcessResult) -> None:
        with self._busy(f"searching for the smallest memory of {process.contestant}"):
            self._progress.announce(f"{process.contestant}: looking for the smallest memory in which it runs")
            found = smallest_memory(trial)
        self.data_lost = trial.feeding.lost()
        if not self.data_lost:
            process.smallest_memory = found
            self._keep(process, {})

    def _find_largest_batch(self, trial: Trial, process: ProcessResult) -> None:
        with self._busy(f"searching for the largest batch of {process.contestant}"):
            self._progress.announce(f"{process.contestant}: looking for the largest batch that fits into memory")
            process.largest_batch = largest_batch(trial)
        self._keep(process, {})

    def _profile(self, runners: Sequence[Runner], bench: Bench) -> None:
        found = self._findings

        def keep(result: ProfileResult) -> None:
            found.profiles.append(result)
            found.keep_profile(result)

        profiling = Profiling(
            self._plan, self._materials_of, runners, bench.scratch, keep, self._progress.say, found.traces
        )
        with self._busy("profiling"):
            processes_each = quantity_text.count(self._plan.profile_processes, "untimed process")
            self._progress.announce(f"profiling every contestant in {processes_each}")
            run_profiles(profiling, self._processes, list(found.profiles))

    def _inspect_compilations(self, runners: Sequence[Runner], bench: Bench) -> None:
        """Of every contestant and work, under the headline's conditions."""
        plan, found = self._plan, self._findings
        waiting, seed = still_to_inspect(plan, self._processes, found.compilations), plan.data_seeds[0]

        def of_work(work: Work) -> Materials:
            return self._materials_of(work, seed)

        for block in plan.blocks:
            whole = plan.works[block.work]
            for number, runner in enumerate(runner_for(each, plan, whole) for each in runners):
                name = runner.name.text
                if block.conditions != plan.headline or (name, whole.id) not in waiting:
                    continue
                waiting.remove((name, whole.id))
                with self._busy(f"asking {name} what compiling did"):
                    self._progress.announce(f"{name}: asking what compiling did")
                    materials = of_work(plan.work_of(block, number))
                    result = Inspection(plan, block, materials, of_work, runner, whole.id, bench.scratch).inspected()
                with signals_wait():
                    found.compilations.append(result)
                    found.keep_compilation(result)

    @contextmanager
    def _busy(self, doing: str) -> Iterator[None]:
        """``doing`` stays when it is interrupted."""
        self.doing = doing
        yield
        self.doing = ""
