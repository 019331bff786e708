"""The float64 reference that every answer is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays, all_widened
from fairlap.models.checks.losses import loss_of
from fairlap.models.workload import Workload
from fairlap.request.work import Mode

Answers = dict[str, npt.NDArray[np.float64]]


def reference_answers(work: Workload) -> Answers:
    """Compute the outputs; in mode "grad" the loss."""
    weights, inputs = all_widened(work.weights), all_widened(work.inputs)
    found = _ANSWERS.get(work.mode, _outputs_at)(work, weights, inputs)
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def answers_in_float32(work: Workload) -> dict[str, npt.NDArray[Any]]:
    """Compute the outputs of the reference in float32, the contestants' range, where they may overflow."""
    with np.errstate(all="ignore"):
        return {name: np.asarray(value) for name, value in _forward(work)(work.weights, work.inputs).items()}


def loss_at(work: Workload, weights: Arrays, inputs: Arrays) -> float:
    outputs = _forward(work)(weights, inputs)
    return float(loss_of(work.spec.loss, outputs[work.spec.outputs[0].name], work.labels))


def _outputs_at(work: Workload, weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
    return _forward(work)(weights, inputs)


def _loss_at(work: Workload, weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
    return {"loss": loss_at(work, weights, inputs)}


_ANSWERS: Mapping[Mode, Callable[[Workload, Arrays, Arrays], Mapping[str, Any]]] = {"grad": _loss_at}


def _forward(work: Workload) -> Callable[[Arrays, Arrays], dict[str, npt.NDArray[Any]]]:
    forward: Callable[[Arrays, Arrays], dict[str, npt.NDArray[Any]]] = work.implementation_of_reference().forward
    return forward
