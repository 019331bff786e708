"""Running a plan: block after block, one process at a time, each process kept as soon as it has ended."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from fairlap.launch.runners import Runner, runners_for
from fairlap.launch.worker_process import Samples
from fairlap.meters.energy import idle_power
from fairlap.race.answers import Agreement
from fairlap.race.fed_check import Feeding
from fairlap.race.materials import Materials, materials_for
from fairlap.race.one_process import Bench, request_for, run_process
from fairlap.race.plan import Block, Plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.progress import Progress, Silence
from fairlap.race.smallest_memory import Trial, smallest_memory
from fairlap.race.stopping import Ending

Keep = Callable[[ProcessResult, Samples], None]
"""Called with every process as soon as it is complete."""


class Race:
    """One run of a plan. ``processes`` grows while it runs and holds whatever ended when it was interrupted.

    ``resumed`` are the whole blocks of an earlier, interrupted run of the same plan. They are not run again.
    """

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        ending: Ending | None = None,
        keep: Keep = lambda _process, _samples: None,
        resumed: Sequence[ProcessResult] = (),
    ) -> None:
        self.plan = plan
        self.ended_early = self.data_lost = ""
        self._ending = ending
        self._keep = keep
        self.processes = list(resumed)
        self.looking_for_memory_of = ""  # whose smallest memory is looked for just now
        self._progress = progress or Silence()
        self._began_s = time.monotonic()
        self._elapsed_s = 0.0
        self._in_frameworks_s = 0.0

    def run(self, after_block: Callable[[], object] = lambda: None) -> None:
        """Make ready what every contestant is handed, then run block after block."""
        with ExitStack() as stack:
            try:
                scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlap-")))
                works = [materials_for(work, self.plan.data_seed, self._progress.say) for work in self.plan.works]
                feeding = Feeding(self.plan, works)
                runners = runners_for(
                    self.plan.contestants, self.plan.threads, self.plan.device, stack, self._progress.say
                )
                self._began_s = time.monotonic()
                sensed = idle_power(self.plan.device, self._progress.say)
                bench = Bench(scratch, Agreement(scratch), sensed, feeding)
                ran = {process.block for process in self.processes}
                for number, block in enumerate(self.plan.blocks, start=1):
                    if block.number in ran:
                        continue
                    self._run_block(block, works[block.work], runners, bench)
                    self._progress.block_over(self.processes)
                    after_block()
                    self.ended_early = self.data_lost
                    if not self.data_lost and self._ending is not None and number < len(self.plan.blocks):
                        behind = self.plan.blocks[:number]
                        kept = sum(each.number in ran for each in behind)
                        self.ended_early = self._ending.reason(behind, self.processes, kept)
                    if self.ended_early:
                        break
                if self.plan.min_memory and not self.data_lost:
                    self._find_smallest_memories(works, runners, bench)
                    after_block()
            finally:
                self._elapsed_s = time.monotonic() - self._began_s

    def _find_smallest_memories(self, works: list[Materials], runners: list[Runner], bench: Bench) -> None:
        """For every contestant and work, under the headline's conditions; stored with its last finished process."""
        for place, materials in enumerate(works):
            drawn = [each for each in self.plan.blocks if each.work == place]
            block = next((each for each in drawn if each.conditions == self.plan.headline), None)
            if block is None:
                continue
            for runner in runners:
                named = (runner.name.text, materials.work.label, self.plan.headline)
                processes = [
                    process
                    for process in self.processes
                    if (process.contestant, process.work, process.conditions) == named
                ]
                process = next((process for process in reversed(processes) if process.finished), None)
                if process is None or any(each.smallest_memory for each in processes):
                    continue
                self.looking_for_memory_of = runner.name.text
                self._progress.say(f"{runner.name.text}: looking for the smallest memory in which it runs")
                request = request_for(self.plan, materials, runner)
                trial = Trial(self.plan, block, materials, runner, request, processes, bench.scratch, bench.feeding)
                found = smallest_memory(trial)
                self.looking_for_memory_of = ""
                self.data_lost = bench.feeding.lost()
                if self.data_lost:  # tries failed for lack of data, not of memory
                    self.ended_early = self.data_lost
                    return
                process.smallest_memory = found
                self._keep(process, {})

    def _run_block(self, block: Block, materials: Materials, runners: list[Runner], bench: Bench) -> None:
        for position, place in enumerate(block.order):
            self.data_lost = bench.feeding.lost()
            if self.data_lost:  # every process to come would fail in the same way
                return
            runner = runners[place]
            began_s = time.monotonic()
            process = ProcessResult(
                block=block.number,
                position=position,
                contestant=runner.name.text,
                work=materials.work.label,
                conditions=block.conditions,
                hash_seed=block.hash_seed,
                padding_bytes=block.padding_bytes,
                cores=block.cores,
                began_s=began_s - self._began_s,
            )
            self._progress.began(len(self.processes), self.plan.process_count(), process)
            samples = run_process(process, block, self.plan, materials, runner, bench)
            self.data_lost = "" if process.finished else bench.feeding.lost()
            if self.data_lost:  # it says nothing about this contestant: the block is broken off here
                return
            process.elapsed_s = time.monotonic() - began_s
            self._in_frameworks_s += process.in_framework_s
            self.processes.append(process)
            self._keep(process, samples)
            self._progress.ended(len(self.processes), self.plan.process_count(), process)

    def shares(self) -> dict[str, float]:
        """Where the wall time went: into the frameworks (import, build, warm-up, measured calls), and into fairlap."""
        whole_s = self._elapsed_s or time.monotonic() - self._began_s
        return {"whole": whole_s, "frameworks": self._in_frameworks_s, "fairlap": whole_s - self._in_frameworks_s}
