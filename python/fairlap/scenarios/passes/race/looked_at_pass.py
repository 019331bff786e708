"""One more pass of a process, which is not timed: each of its items is compared with the reference.

Its files leave the page cache before it, and those that are not there after it were not read: a pipeline that keeps
what it read in an earlier pass is found by that, whatever library reads.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.frameworks.adapter_parts.passes.passes import FIRST_BATCH, STILL_CACHED
from fairlap.machine.files import page_cache
from fairlap.models.array_files import safetensors
from fairlap.models.sources.stored_items.stored_items import pass_inputs, read_index
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.scenarios.passes.passes_found import PassesFound

_BITS_OF_SEED = 20
_MOST_STAYED = 0.5  # of the pages: with more of them in memory, what a pass reads cannot be seen
_LEAST_READ = 0.5  # of those that had left; memory may run short and drop some again


class LookedAtPass(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._items = read_index(materials.folder)
        self._limit_s = plan.limits.answer_s
        self._seed = random.Random(f"pass {plan.seed} {block.number}").getrandbits(_BITS_OF_SEED)
        self._inputs, self._answer = scratch / "looked-at.safetensors", scratch / "looked-at-answer.safetensors"
        self._is_open = True

    def goes_on(self, bench: Bench) -> bool:
        return self._is_open

    def step(self, process: OneProcess) -> None:
        self._is_open = False
        files, result = self._items.files, process.result
        warm = page_cache.resident_share(files)
        page_cache.evict(files)
        stayed = page_cache.resident_share(files)
        safetensors.write(self._inputs, pass_inputs(self._seed, looked_at=True))
        self._answer.unlink(missing_ok=True)
        process.worker.answer("data", self._answer, within_s=self._limit_s, inputs=self._inputs)
        read = None
        if stayed <= _MOST_STAYED:
            read = min(max((page_cache.resident_share(files) - stayed) / (1 - stayed), 0.0), 1.0)
        first_ns = float(np.ravel(safetensors.read(self._answer)[FIRST_BATCH])[0])
        first_s = first_ns / 1e9 if np.isfinite(first_ns) else None
        result.passes = PassesFound(self._items.cache, self._items.items, first_s, stayed, read)
        result.warnings = [*result.warnings, *self._notices(warm, stayed)]
        if read is not None and read < _LEAST_READ:
            raise OtherWork(
                f"a pass read {quantity_text.share(read)} of the data: its items are kept from an earlier pass",
                "E_KEPT_ANSWERS",
            )

    def _notices(self, warm: float, stayed: float) -> list[Notice]:
        found = []
        if self._items.cache == "warm" and warm < 1 - STILL_CACHED:
            found.append(f"after its passes {quantity_text.share(warm)} of the data were in the page cache, not all")
        if stayed > _MOST_STAYED:
            found.append(
                f"{quantity_text.share(stayed)} of the data stayed in the page cache, so a pipeline that keeps items "
                "from an earlier pass would not be found"
            )
        return [Notice("W_PAGE_CACHE", text) for text in found]
