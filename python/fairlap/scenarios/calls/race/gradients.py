"""The loss and its gradients: the loss against the reference's, gradients by slopes along a few directions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.checks.gradient_check import gradient_disagreements, possible_slopes, unusable
from fairlap.models.reference import reference_answers
from fairlap.models.spec import Spec
from fairlap.models.training.exercise import written
from fairlap.models.training.gradients import GradientCheck, gradients_expected
from fairlap.models.training.reference import LOSS
from fairlap.race.equal_work.answers import (
    GRADIENT,
    LARGEST_GRADIENT_DISAGREEMENT,
    OtherWork,
    reference_errors,
)
from fairlap.race.equal_work.materials import SLOPES, Materials
from fairlap.race.equal_work.mode_side import ModeSide
from fairlap.request.work import Work
from fairlap.scenarios.process_result import AnswerError

_ELEMENT_BYTES = 4


class Gradients(ModeSide):
    compares_peers = True

    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        if materials.own_slopes is not None:
            return written(gradients_expected(materials.gradient_exercise(which)))
        work = materials.workload(which)
        return {**reference_answers(work), SLOPES: np.asarray(possible_slopes(work))}

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        if (check := materials.gradient_check(which)) is not None:
            return gradient_errors(check, got, when)
        reference = dict(materials.reference(which))
        slopes = reference.pop(SLOPES)
        of_loss = reference_errors(materials, got, reference, when)
        return [*of_loss, *_slope_errors(materials, got, which, when, slopes.tolist())]

    def answer_bytes(self, spec: Spec, work: Work) -> int:
        return _ELEMENT_BYTES * spec.trained_parameters()

    def copies(self, materials: Materials, got: Arrays, batch: int) -> int:
        """For whole copies of the items, loss and gradients are the same."""
        return 1


def _slope_errors(
    materials: Materials, got: Arrays, which: str, when: str, slopes: list[list[float]]
) -> list[AnswerError]:
    gradients = {name.removeprefix(GRADIENT): got[name] for name in got if name.startswith(GRADIENT)}
    work = materials.workload(which)
    if why := unusable(work, gradients):
        raise OtherWork(why, "E_GRADIENT")
    allowed = LARGEST_GRADIENT_DISAGREEMENT[work.precision]
    disagreements = gradient_disagreements(work, gradients, slopes)
    return [
        AnswerError(f"gradient along direction {number}", when, math.nan, math.nan, value, value <= allowed)
        for number, value in enumerate(disagreements)
    ]


def gradient_errors(check: GradientCheck, got: Arrays, when: str) -> list[AnswerError]:
    """Of the loss, and of the gradient of every weight, relative to that of all weights together."""
    expected = check.found.expected
    if missing := [name for name in expected if name not in got or got[name].shape != expected[name].shape]:
        name = missing[0].removeprefix(GRADIENT)
        raise OtherWork(f"the gradient of {name} is missing, or has another shape", "E_GRADIENT")
    apart, why = check.judged(got)
    whole = math.sqrt(sum(float(np.sum(np.square(array))) for name, array in expected.items() if name != LOSS))
    found = []
    for name, array in expected.items():
        differences = np.abs(got[name].astype(np.float64) - array)
        size = max(abs(float(array)), 1.0) if name == LOSS else whole
        what = name if name == LOSS else f"gradient of {name.removeprefix(GRADIENT)}"
        relative = float(np.linalg.norm(differences)) / max(size, 1e-300)
        worst = float(differences.max(initial=0.0))
        found.append(AnswerError(what, when, None, worst, relative, apart[name] <= 1, why))
    return found
