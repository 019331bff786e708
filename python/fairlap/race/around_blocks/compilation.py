"""Ask a contestant what compiling did, and call it on other inputs, in fresh processes that are not timed.

Each begins with empty caches on disk, so a stall is what meets a user whose compiler sees a shape for the first time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from fairlap.errors import FairlapError
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.draw import draw_inputs, draw_labels
from fairlap.models.registry import spec_with
from fairlap.models.spec import BATCH, BATCH_LABELS, LABELS
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.block_worker import block_worker, request_for
from fairlap.request.fields.sizes.other_inputs import OtherInputs
from fairlap.request.work import Work
from fairlap.scenarios.untimed.compilation_messages import Describe, Resize, Resized

LONGEST_PREPARATION_S = 30.0
"""A contestant that takes longer to prepare is not prepared once more for each batch and size."""


@dataclass(frozen=True)
class Inspection:
    """All that looking at one contestant needs to know."""

    plan: Plan
    block: Block  # whose draws its processes share
    materials: Materials
    materials_of: Callable[[Work], Materials]  # of another batch
    runner: Runner
    work_id: str  # of the plan's work
    scratch: Path

    def inspected(self) -> CompilationResult:
        found = CompilationResult(self.runner.name.text, self.work_id, self.block.conditions)
        if self.runner.name.program:
            message = "a program that speaks the worker protocol is not asked what compiling did"
            return msgspec.structs.replace(found, code="E_UNSUPPORTED", message=message)
        try:
            with self._prepared(self.materials) as (worker, prepared_s):
                found = msgspec.structs.replace(found, described=worker.ask(Describe(), within_s=self._most_s))
                for batch in self.plan.recompile:
                    inputs = self._inputs(batch)
                    resized = (
                        Resized(why=inputs)
                        if isinstance(inputs, str)
                        else worker.ask(Resize(batch, str(inputs)), within_s=self._most_s)
                    )
                    found = msgspec.structs.replace(found, batches=(*found.batches, AtBatch(batch, resized)))
                for others in self.plan.recompile_inputs:
                    batch = self.materials.work.batch
                    request = Resize(batch, str(self._file_of(others)), others.free_sizes, others.type)
                    resized = worker.ask(request, within_s=self._most_s)
                    at = AtBatch(batch, resized, inputs=others)
                    found = msgspec.structs.replace(found, batches=(*found.batches, at))
                worker.quit()
        except WorkerLost as lost:
            lost = under_a_limit(lost, self.plan.limits.memory_bytes)
            return msgspec.structs.replace(found, code=lost.code, message=lost.message)
        except FairlapError as error:
            return msgspec.structs.replace(found, code=error.code, message=str(error))
        return self._with_prepared(found, prepared_s)

    def _with_prepared(self, found: CompilationResult, prepared_s: float) -> CompilationResult:
        """Add what a call costs on each of these inputs in a process that was prepared for them."""
        batches = [self._compared(each, found, prepared_s) for each in found.batches]
        return msgspec.structs.replace(found, batches=tuple(batches))

    def _compared(self, at: AtBatch, found: CompilationResult, prepared_s: float) -> AtBatch:
        if why := self._why_not_prepared(at, found, prepared_s):
            return msgspec.structs.replace(at, why_not_prepared=why)
        try:
            if at.inputs is None:
                materials = self.materials_of(msgspec.structs.replace(self.materials.work, batch=at.batch))
                request = Resize(at.batch, str(materials.inputs_file("inputs")))
            else:
                materials = self.materials
                request = Resize(at.batch, str(self._file_of(at.inputs)), at.inputs.free_sizes, at.inputs.type)
            with self._prepared(materials, at.inputs) as (worker, _):
                resized = worker.ask(request, within_s=self._most_s)
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
            return f"it was built for this {'batch' if at.inputs is None else 'size'}"
        if at.inputs is not None:
            return (
                "no process is prepared for inputs of another type"
                if at.inputs.type
                else self._why_too_long(prepared_s)
            )
        if at.batch == self.materials.work.batch:
            return "it was prepared for this batch"
        if self.materials.work.source is not None:
            return "a model of your own has its inputs for one batch; race it with --batch"
        return self._why_too_long(prepared_s)

    def _why_too_long(self, prepared_s: float) -> str:
        if prepared_s > LONGEST_PREPARATION_S:
            return f"preparing it takes over {LONGEST_PREPARATION_S:.0f} s"
        return ""

    @contextmanager
    def _prepared(
        self, materials: Materials, others: OtherInputs | None = None
    ) -> Iterator[tuple[WorkerProcess, float]]:
        """Start a worker with its contestant ready for these inputs, and time that."""
        request = request_for(self.plan, materials, self.runner)
        if others is not None:
            file = str(self._file_of(others))
            labels = None if request.labels is None else file
            request = msgspec.structs.replace(
                request, inputs=file, changed=file, labels=labels, unseen=(), free_sizes=others.free_sizes
            )
        with TemporaryDirectory(dir=self.scratch) as caches:
            runner = replace(self.runner, environment=self.runner.environment_with(cache_folder=caches))
            began_s = time.monotonic()
            with block_worker(self.block, runner, self.plan.limits) as worker:
                worker.prepare(request, within_s=self._most_s)
                yield worker, time.monotonic() - began_s

    @property
    def _most_s(self) -> float:
        return self.plan.limits.prepare_s

    def _file_of(self, others: OtherInputs) -> Path:
        """Of another type they are the work's own, which the worker converts; of other sizes they are drawn."""
        if not others.free_sizes:
            return self.materials.inputs_file("inputs")
        spec, batch, seed = (
            spec_with(self.materials.package, others.free_sizes),
            self.materials.work.batch,
            self.block.data_seed,
        )
        file = self.scratch / f"inputs-{self.materials.package}-{others.text}.safetensors"
        labels = draw_labels(spec, batch, seed)
        named = {} if labels is None else {LABELS: labels, BATCH_LABELS: labels}
        safetensors.write(file, {**draw_inputs(spec, batch, seed), **named})
        return file

    def _inputs(self, batch: int) -> Path | str:
        """Find the file of inputs of this batch, or why there is none; those of a user's model are repeated."""
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
