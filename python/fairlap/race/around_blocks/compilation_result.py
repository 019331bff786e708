"""What compiling did to a contestant, as it was seen in processes of their own. They are in no block and no verdict."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairlap.race.planning.plan import Plan
from fairlap.request.fields.sizes.other_inputs import OtherInputs
from fairlap.request.work import Conditions
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.untimed.compilation_messages import Described, Resized


class AtBatch(msgspec.Struct, frozen=True):
    """Calls at another batch than the one that the contestant was prepared for, or on other inputs at its own."""

    batch: int
    resized: Resized = Resized()
    prepared_call_s: float | None = None  # a call in a process that was prepared for these inputs
    why_not_prepared: str = ""
    inputs: OtherInputs | None = None

    @property
    def text(self) -> str:
        """``7``, ``tokens=64`` or ``float64``."""
        return str(self.batch) if self.inputs is None else self.inputs.text


class CompilationResult(msgspec.Struct, frozen=True):
    """Of one contestant on one work. What was found before the process was lost stays."""

    contestant: str
    work_id: str
    conditions: Conditions
    described: Described = Described()
    batches: tuple[AtBatch, ...] = ()
    code: str = ""  # of what went wrong
    message: str = ""


def still_to_inspect(
    plan: Plan, processes: Iterable[ProcessResult], found: Iterable[CompilationResult]
) -> set[tuple[str, str]]:
    """Collect contestants with ids of works that they finished under the headline's conditions, not inspected yet."""
    if not plan.recompiled_on:
        return set()
    finished = {
        (process.contestant, process.work_id)
        for process in processes
        if process.finished and process.conditions == plan.headline
    }
    return finished - {(each.contestant, each.work_id) for each in found}
