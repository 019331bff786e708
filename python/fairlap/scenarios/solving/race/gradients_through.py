"""Gradients through a solver: of the loss of the end, by the initial values and the weights, all compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tolerance
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import Work
from fairlap.scenarios.process_result import AnswerError
from fairlap.scenarios.solving.race.solutions import Solutions, explained

_ELEMENT_BYTES = 8
_LARGEST_ERROR = 0.05  # at the usual tolerance, relative to the largest slope


class GradientsThrough(Solutions):
    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        work = materials.workload(which)
        weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
        model = work.implementation_of_reference()
        return {**super().reference(materials, which), **model.gradients(weights, work.inputs)}

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        reference = dict(materials.reference(which))
        slopes = {name: reference.pop(name) for name in gradient_names(reference)}
        found = explained(answers.reference_errors(materials, got, reference, when), got)
        for name, expected in slopes.items():
            allowed = Tolerance(0.99, _LARGEST_ERROR * float(np.abs(expected).max()), _LARGEST_ERROR)
            found.append(answers.answer_error(name, when, slope_in(got, name), expected, allowed))
        return found

    def answer_bytes(self, spec: Spec, work: Work) -> int:
        return super().answer_bytes(spec, work) * 2 + _ELEMENT_BYTES * spec.parameters


def gradient_names(arrays: Mapping[str, Any]) -> list[str]:
    return [name for name in arrays if name == BY_START or name.startswith(BY_WEIGHT)]


def slope_in(got: Arrays, name: str) -> np.ndarray:
    if name not in got:
        raise OtherWork(f"its answer lacks {name}", "E_GRADIENT")
    return got[name]


def gradient_error(got: Arrays, reference: Arrays) -> float:
    """Take the norm of the difference over the norm, of the initial values' gradient and of each weight's: the worst.

    Infinite where one is not finite, as where the solver gave up.
    """
    worst = 0.0
    for name in gradient_names(reference):
        expected, found = reference[name], slope_in(got, name)
        if found.shape != expected.shape:
            raise OtherWork(f"{name} has the shape {list(found.shape)}, not {list(expected.shape)}", "E_GRADIENT")
        if not np.isfinite(found).all():
            return float("inf")
        worst = max(worst, float(np.linalg.norm(found - expected)) / max(float(np.linalg.norm(expected)), 1e-300))
    return worst
