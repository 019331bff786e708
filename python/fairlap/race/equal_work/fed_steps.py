"""Fed steps of training: where they end, compared with the reference's steps on the batches that were fed.

The first steps of a pipeline begin with the weights that were given, a step after the measurement with the state that
it found. A contestant that trains on other items, or on the labels of others, ends elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from fairlap.errors import InvalidRequest
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import Exercise
from fairlap.models.training.reference import Batch
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import state_errors, step_errors
from fairlap.scenarios.process_result import AnswerError


class FedSteps:
    """The reference's first steps are computed once for all contestants that were fed the same batches."""

    def __init__(self, data: str) -> None:
        self._data = data
        self._checks: dict[str, TrainingCheck] = {}

    def first_errors(self, materials: Materials, fed: Sequence[Arrays], got: Arrays, when: str) -> list[AnswerError]:
        """Compare the first steps; raise InvalidRequest for data on which the reference leaves float32's numbers."""
        key = _hash(materials.work.id, fed)
        if key not in self._checks:
            self._checks[key] = TrainingCheck(materials.exercise_on([_batch(each) for each in fed]))
        check = self._checks[key]
        errors = state_errors(check, got, when)
        if not all(error.right for error in errors):
            self._require_trainable(check.exercise, when)
        return errors

    def later_errors(
        self, materials: Materials, fed: Arrays, before: Arrays, got: Arrays, when: str
    ) -> list[AnswerError]:
        return step_errors(materials.exercise_on([_batch(fed)], before), got, when)

    def _require_trainable(self, exercise: Exercise, when: str) -> None:
        if not exercise.stays_in_float32():
            raise InvalidRequest(
                f"{self._data} has numbers with which the reference itself trains beyond the range of float32; no step "
                f"can be checked, so scale the data or lower the learning rate ({when})",
                code="E_DATA",
            )


def _batch(fed: Arrays) -> Batch:
    return Batch({name: array for name, array in fed.items() if name != LABELS}, fed.get(LABELS))


def _hash(label: str, fed: Sequence[Arrays]) -> str:
    digest = hashlib.sha256(label.encode())
    for batch in fed:
        for name, array in sorted(batch.items()):
            digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()
