"""Inference: every output of the model against the reference's, or as the reference itself measures it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.checks.token_check import OWN_TOKENS
from fairlap.models.reference import reference_answers
from fairlap.models.registry import reference_at
from fairlap.models.spec import BATCH, UNIT_ROUNDOFF, Spec
from fairlap.race.equal_work.answers import OtherWork, recorded, reference_errors
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import ModeSide
from fairlap.request.work import Work
from fairlap.scenarios.process_result import AnswerError

_ELEMENT_BYTES = 4


class Inference(ModeSide):
    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        return reference_answers(materials.workload(which))

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        measured = getattr(_reference_of(materials), "output_errors", None)
        if measured is None:
            own = got.get(OWN_TOKENS)
            reference = materials.reference(which) if own is None else materials.reference_after(which, own)
            return reference_errors(materials, got, reference, when)
        if missing := [tensor.name for tensor in materials.spec.outputs if tensor.name not in got]:
            raise OtherWork(f"its answer lacks {missing[0]}", "E_OUTPUT")
        inputs, roundoff = safetensors.read(materials.inputs_file(which)), UNIT_ROUNDOFF[materials.work.precision]
        found = measured(materials.weights, inputs, got, materials.reference(which), roundoff)
        return [recorded(each, when) for each in found]

    def notices(self, errors: list[AnswerError]) -> list[Notice]:
        """Show where a right answer chose other tokens than the reference, which rounding does where two are near."""
        other = next((error.why for error in errors if error.right and error.why), "")
        return [Notice("W_OTHER_TOKENS", other)] if other else []

    def answer_bytes(self, spec: Spec, work: Work) -> int:
        return sum(_ELEMENT_BYTES * math.prod(tensor.sized(work.batch)) for tensor in spec.outputs)

    def copies(self, materials: Materials, got: Arrays, batch: int) -> int:
        for tensor in materials.spec.outputs:
            shape = tensor.sized(batch)
            if tensor.name not in got or got[tensor.name].shape != shape:
                raise OtherWork(f"{tensor.name} does not have the shape {shape}", "E_OUTPUT")
        return batch // materials.work.batch

    def copy(self, materials: Materials, name: str, array: np.ndarray, number: int) -> np.ndarray:
        shape = next((tensor.shape for tensor in materials.spec.outputs if tensor.name == name), ())
        if BATCH not in shape:
            return array
        size = materials.work.batch
        return array.take(range(number * size, (number + 1) * size), axis=shape.index(BATCH))


def _reference_of(materials: Materials) -> Any:
    """Find the reference of a built-in model; a user's has none that measures answers in its own way."""
    return None if materials.work.source is not None else reference_at(materials.package)
