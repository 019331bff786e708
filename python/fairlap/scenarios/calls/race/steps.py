"""Steps of training: the state after them against the reference's, and drawn steps from the state that they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec
from fairlap.models.training.exercise import written
from fairlap.models.training.in_bfloat16 import TRAINED_IN, trained_in_precision
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import ModeSide
from fairlap.race.equal_work.training_answers import drawn_step_errors, lost_sums, training_errors
from fairlap.request.work import Precision, Work
from fairlap.scenarios.calls.latency_messages import BEFORE
from fairlap.scenarios.process_result import AnswerError

_STATE_BYTES = 2 * 4 * 3  # of a weight, with what the optimizer keeps, before and after


class Steps(ModeSide):
    tells_inputs_apart = False
    ranks_alone = True
    checked_at_batch = "finite and of the right shapes"

    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        return written(trained_in_precision(materials.exercise(which)))

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        return training_errors(materials, got, which, when)

    def drawn_errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        before = {name.removeprefix(BEFORE): each for name, each in got.items() if name.startswith(BEFORE)}
        return drawn_step_errors(materials, got, before, which, when)

    def answer_bytes(self, spec: Spec, work: Work) -> int:
        return _STATE_BYTES * spec.trained_parameters()

    def copies(self, materials: Materials, got: Arrays, batch: int) -> int:
        """None: steps also update statistics that depend on the number of items."""
        return 0

    def notices(self, errors: list[AnswerError]) -> list[Notice]:
        return lost_sums(errors)

    def why_not_in(self, precision: Precision) -> str:
        return "" if precision in TRAINED_IN else f"training is raced in {', '.join(TRAINED_IN)}, not in {precision}"

    def why_no_ranks(self, work: Work, spec: Spec) -> str:
        if not spec.has_statistics():
            return ""
        return (
            f"{work.model} normalises by the statistics of a batch, of which each rank sees a part, and PyTorch's "
            "SyncBatchNorm, which joins the parts, needs GPUs; race it in mode infer, or leave out --processes"
        )
