"""Ask a contestant what compiling did, and call it at other batch sizes, in fresh processes that are not timed.

Each begins with empty caches on disk, so a stall is what meets a user whose compiler sees a shape for the first time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from fairlap.errors import FairlapError
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models import safetensors
from fairlap.models.spec import BATCH
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult
from fairlap.race.equal_work.materials import Materials
from fairlap.race.plan import Block, Plan
from fairlap.race.processes.conditions import environment_of
from fairlap.race.processes.one_process import request_for
from fairlap.request.work import Work
from fairlap.scenarios.untimed.compilation_messages import Resized

LONGEST_PREPARATION_S = 30.0
"""A contestant that takes longer to prepare is not prepared once more for each batch."""


@dataclass(frozen=True)
class Inspection:
    """All that looking at one contestant needs to know."""

    plan: Plan
    block: Block  # whose draws its processes share
    materials: Materials
    materials_of: Callable[[Work], Materials]  # of another batch
    runner: Runner
    work: str  # the label of the plan's work
    scratch: Path

    def inspected(self) -> CompilationResult:
        found = CompilationResult(self.runner.name.text, self.work, self.block.conditions)
        if self.runner.name.program:
            message = "a program that speaks the worker protocol is not asked what compiling did"
            return msgspec.structs.replace(found, code="E_UNSUPPORTED", message=message)
        try:
            with self._prepared(self.materials) as (worker, prepared_s):
                found = msgspec.structs.replace(found, described=worker.describe(within_s=self._most_s))
                for batch in self.plan.recompile:
                    inputs = self._inputs(batch)
                    resized = (
                        Resized(why=inputs)
                        if isinstance(inputs, str)
                        else worker.resize(batch, inputs, within_s=self._most_s)
                    )
                    found = msgspec.structs.replace(found, batches=(*found.batches, AtBatch(batch, resized)))
                worker.quit()
        except WorkerLost as lost:
            lost = under_a_limit(lost, self.plan.limits.memory_bytes)
            return msgspec.structs.replace(found, code=lost.code, message=lost.message)
        except FairlapError as error:
            return msgspec.structs.replace(found, code=error.code, message=str(error))
        return self._with_prepared(found, prepared_s)

    def _with_prepared(self, found: CompilationResult, prepared_s: float) -> CompilationResult:
        """What a call costs at each batch in a process that was prepared for it."""
        batches = [self._compared(each, found, prepared_s) for each in found.batches]
        return msgspec.structs.replace(found, batches=tuple(batches))

    def _compared(self, at: AtBatch, found: CompilationResult, prepared_s: float) -> AtBatch:
        if why := self._why_not_prepared(at, found, prepared_s):
            return msgspec.structs.replace(at, why_not_prepared=why)
        try:
            materials = self.materials_of(msgspec.structs.replace(self.materials.work, batch=at.batch))
            with self._prepared(materials) as (worker, _):
                resized = worker.resize(at.batch, materials.inputs_file("inputs"), within_s=self._most_s)
                worker.quit()
        except FairlapError as error:
            return msgspec.structs.replace(at, why_not_prepared=str(error))
        return msgspec.structs.replace(at, prepared_call_s=resized.call_s, why_not_prepared=resized.why)

    def _why_not_prepared(self, at: AtBatch, found: CompilationResult, prepared_s: float) -> str:
        if at.resized.call_s is None:
            return "there is no call to compare with"
        if found.described.graphs is None:
            return "it compiles nothing for a batch"
        if at.resized.built_s is not None:
            return "it was built for this batch"
        if at.batch == self.materials.work.batch:
            return "it was prepared for this batch"
        if self.materials.work.source is not None:
            return "a model of your own has its inputs for one batch; race it with --batch"
        if prepared_s > LONGEST_PREPARATION_S:
            return f"preparing it takes over {LONGEST_PREPARATION_S:.0f} s"
        return ""

    @contextmanager
    def _prepared(self, materials: Materials) -> Iterator[tuple[WorkerProcess, float]]:
        """A worker with its contestant ready, and how long that took."""
        with TemporaryDirectory(dir=self.scratch) as caches:
            environment = environment_of(self.block, self._environment(caches))
            began_s = time.monotonic()
            with WorkerProcess(
                self.runner.command,
                environment=environment,
                start_s=self.plan.limits.start_s,
                cores=self.block.cores,
                memory_limit_bytes=self.plan.limits.memory_bytes,
            ) as worker:
                worker.prepare(request_for(self.plan, materials, self.runner), within_s=self._most_s)
                yield worker, time.monotonic() - began_s

    def _environment(self, caches: str) -> dict[str, str]:
        name, plan = self.runner.name, self.plan
        wanted = Settings(plan.threads, name.variant, plan.device, dict(name.options), cache_folder=caches)
        return framework_named(name.framework).environment_for(wanted)

    @property
    def _most_s(self) -> float:
        return self.plan.limits.prepare_s

    def _inputs(self, batch: int) -> Path | str:
        """The file of inputs of this batch, or why there is none. Those of a user's model are repeated."""
        work, spec = self.materials.work, self.materials.spec
        if any(BATCH in tensor.shape for tensor in spec.inputs):
            return self.materials_of(msgspec.structs.replace(work, batch=batch)).inputs_file("inputs")
        firsts = {tensor.shape[0] if tensor.shape else None for tensor in spec.inputs}
        if work.source is None or firsts != {work.batch}:
            return "the first size of its inputs is not the batch"
        arrays = safetensors.read(self.materials.inputs_file("inputs"))
        places = np.arange(batch) % work.batch
        file = self.scratch / f"inputs-of-{batch}.safetensors"
        safetensors.write(
            file, {tensor.name: np.ascontiguousarray(arrays[tensor.name][places]) for tensor in spec.inputs}
        )
        return file
