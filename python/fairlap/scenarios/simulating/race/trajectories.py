"""Simulations against the reference: the last observation, and the sums of all observations, rewards and ends.

A trajectory may amplify rounding: a pole falls, and an episode that ends a step later goes on elsewhere. In fp64 that
stays far below what float32 observations lose. In fp32 an environment is compared only if the reference's trajectory
hardly changes where its start is moved by more than fp32 rounds, one way and the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.bench_models.environments.environment import EPISODES, LOST, OBSERVATION, OBSERVED, RETURNS, START
from fairlap.errors import InvalidRequest
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.calls.race.inference import Inference
from fairlap.scenarios.process_result import AnswerError

Array = npt.NDArray[Any]

_MOVED = 4e-6  # of a component's range: some twenty roundings of its largest values to float32
_STABLE = 0.25  # of what an output may be off, that the reference may change where its start is moved
_FEWEST_COMPARED = 0.5
_COMPARED = "compared"  # in the reference: whether an environment is


class Trajectories(Inference):
    refers_by_precision = True  # it says which environments are compared
    checked_at_batch = "against the reference"

    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        expected = super().reference(materials, which)
        compared = np.ones(materials.work.batch, np.bool_)
        if materials.work.precision == "fp32":
            work = materials.workload(which)
            forward = work.implementation_of_reference().forward
            for moved in (-_MOVED, _MOVED):
                starts = work.inputs[START].astype(np.float64) + moved
                compared &= _stable(materials, expected, forward({}, {**work.inputs, START: starts}))
            if compared.mean() < _FEWEST_COMPARED:
                left_out = quantity_text.share(1 - compared.mean())
                raise InvalidRequest(
                    f"{materials.spec.name} amplifies rounding so much that {left_out} of its trajectories cannot "
                    "be compared in fp32; race it in fp64",
                    code="E_PRECISION",
                )
        return {**expected, _COMPARED: compared.astype(np.float64)}

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        reference = dict(materials.reference(which))
        compared = reference.pop(_COMPARED) > 0
        found = []
        for name, expected in reference.items():
            if name not in got or got[name].shape != expected.shape:
                raise OtherWork(f"its answer lacks {name} of the shape {list(expected.shape)}", "E_OUTPUT")
            allowed = Tolerance(cosine=-1.0, absolute=_may_be_off(materials, name, expected), relative=0.0)
            found.append(answers.answer_error(name, when, got[name][compared], expected[compared], allowed))
        return found


def _may_be_off(materials: Materials, name: str, expected: Array) -> float:
    """Give what an element of an output may differ by. Episodes are counted exactly."""
    share, size = LOST[materials.work.precision], materials.tolerance(name).absolute
    largest = float(np.abs(expected).max())
    return {OBSERVATION: size, OBSERVED: share * largest + size, RETURNS: share * largest, EPISODES: 0.0}[name]


def _stable(materials: Materials, expected: Arrays, moved: Arrays) -> npt.NDArray[np.bool_]:
    """Find the environments of which no output changes by much."""
    found = np.ones(materials.work.batch, np.bool_)
    for name, array in expected.items():
        change = np.abs(moved[name] - array).reshape(len(array), -1).max(axis=1)
        found &= change <= _STABLE * _may_be_off(materials, name, array)
    return found
