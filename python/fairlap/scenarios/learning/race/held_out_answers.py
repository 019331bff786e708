"""What a contestant has learnt: its weights in the float64 reference, on the held-out items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.labelled_set import LabelledSet
from fairlap.models.array_files.npy_map import release
from fairlap.models.arrays import Arrays, Labels, all_widened, batches_in_turn, widened
from fairlap.models.checks.losses import loss_of
from fairlap.models.spec import LABELS, Loss
from fairlap.models.task_metrics import parts_of, value_of
from fairlap.models.training.reference import WEIGHT, Batch
from fairlap.race.equal_work.answers import OtherWork, answer_error
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.learning.race.held_out_scores import CTC_SCORE, spelt_labels
from fairlap.scenarios.process_result import AnswerError

Array = npt.NDArray[Any]

_ITEMS_AT_ONCE = 64  # their intermediate arrays fit into a cache: for mnist four times as quick as all 1,000 at once
_ASKED_BYTES = 2**26  # of items at once, which are written to a file for the process of a user's model
_ADVICE = "; if all diverge, lower the learning rate"


@np.errstate(over="ignore", invalid="ignore")  # training may diverge
def evaluated(
    materials: Materials, found: LabelledSet, state: Arrays, answers: Mapping[str, Array], epochs: int
) -> tuple[float, float]:
    """Compute the score and the loss of the reference's answers, from this state after so many epochs.

    Raises OtherWork where they diverged.
    """
    outputs = answers[materials.spec.outputs[0].name]
    score = score_of_answers(outputs, found.held_labels, materials.spec.loss)
    if materials.spec.loss == "own":
        loss = _loss_by_own_code(materials, found, _weights(state))
    else:
        loss = float(loss_of(materials.spec.loss, outputs, found.held_labels))
    if not (math.isfinite(score) and math.isfinite(loss)):
        raise OtherWork(
            f"after epoch {epochs} its loss on held-out items is not finite{_ADVICE}",
            "E_TRAINING",
        )
    return score, loss


@np.errstate(over="ignore", invalid="ignore")
def held_out_answers(materials: Materials, found: LabelledSet, state: Arrays, epochs: int) -> Mapping[str, Array]:
    weights = _weights(state)
    if missing := [each.name for each in materials.spec.weights if each.name not in weights]:
        raise OtherWork(f"after epoch {epochs} it has no weights {', '.join(missing)}", "E_TRAINING")
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise OtherWork(f"after epoch {epochs} its weights are not finite{_ADVICE}", "E_TRAINING")
    held = found.held_inputs
    if materials.own_slopes is not None:
        batch = materials.work.batch
        of_item = 2 * sum(array[:1].nbytes for array in held.values())
        at_once = max(1, _ASKED_BYTES // max(1, of_item * batch)) * batch

        def answered(inputs: dict[str, Array]) -> Mapping[str, Array]:
            assert materials.own_slopes is not None
            return materials.own_slopes.outputs(weights, inputs, batch)
    else:
        forward, at_once = materials.workload("inputs").implementation_of_reference().forward, _ITEMS_AT_ONCE

        def answered(inputs: dict[str, Array]) -> Mapping[str, Array]:
            computed: Mapping[str, Array] = forward(weights, inputs)
            return computed

    parts = []
    for first in range(0, len(found.held_labels), at_once):
        parts.append(answered({name: widened(array[first : first + at_once]) for name, array in held.items()}))
        for array in held.values():
            release(array)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _loss_by_own_code(materials: Materials, found: LabelledSet, weights: Mapping[str, Array]) -> float:
    """Average the loss of a user's code over batches of the usual size, of which the last one is filled up."""
    assert materials.own_slopes is not None
    losses = []
    for batch in batches_in_turn({**found.held_inputs, LABELS: found.held_labels}, materials.work.batch):
        labels = batch.pop(LABELS)
        inputs = all_widened(batch)
        losses.append(materials.own_slopes.slopes(weights, Batch(inputs, labels), training=False).loss)
    return float(np.mean(losses))


def _weights(state: Arrays) -> dict[str, Array]:
    return {
        name.removeprefix(WEIGHT): array.astype(np.float64) for name, array in state.items() if name.startswith(WEIGHT)
    }


HELD_OUT = "held-out items"
"""How ``AnswerError.when`` begins of a contestant's own answers to these."""


def answered_errors(materials: Materials, got: Arrays, answers: Mapping[str, Array], epochs: int) -> list[AnswerError]:
    """Measure how far a contestant's answers are from those of the reference with the contestant's weights.

    What may be off by an absolute amount grows with the answers, which training makes larger than those of drawn
    weights.
    """
    errors = []
    for name, expected in answers.items():
        if name not in got:
            raise OtherWork(f"after epoch {epochs} its answers to held-out items lack {name}", "E_OUTPUT")
        tolerance = materials.tolerance(name)
        usual = max(1.0, float(np.sqrt(np.mean(np.square(expected)))))
        allowed = replace(tolerance, absolute=usual * tolerance.absolute)
        errors.append(answer_error(name, f"{HELD_OUT}, epoch {epochs}", got[name], expected, allowed))
    return errors


def score_of_answers(outputs: Array, labels: Labels, loss: Loss = "cross_entropy") -> float:
    """Compute the share of right answers; of values, the share of their variance that is explained, R squared.

    Of frames that spell a label, it is one less the character error rate. R squared is below 0 for answers that are
    worse than the mean, and so is this for answers with more errors than characters. All are 1 at best.
    """
    if loss == "ctc":
        return 1 - value_of(CTC_SCORE, [parts_of(CTC_SCORE, [outputs], spelt_labels(labels))])
    if labels.dtype.kind == "i":
        return float(np.mean(outputs.argmax(axis=-1) == labels))
    missed, spread = np.sum(np.square(outputs - labels)), np.sum(np.square(labels - labels.mean(axis=0)))
    return float(1 - missed / spread) if spread else float(missed == 0)
