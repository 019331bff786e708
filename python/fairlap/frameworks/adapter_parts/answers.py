"""Convert what a call returned into float32 arrays in C order, by the names that the checks use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES
from fairlap.models.spec import LABELS, Spec
from fairlap.models.workload import Workload

LOSS = "loss"
GRADIENT = "grad/"

Canonical = Callable[[str, Any], Any]
Answers = dict[str, npt.NDArray[np.float32]]


def as_float32(array: Any) -> npt.NDArray[np.float32]:
    """Unlike ``ascontiguousarray``, this keeps a shape without axes."""
    return np.asarray(array, dtype=np.float32, order="C")


def copied(array: Any) -> npt.NDArray[np.float32]:
    """Of memory that the next step writes to."""
    return np.array(array, dtype=np.float32, order="C")


def named_outputs(spec: Spec, results: Iterable[Any]) -> Answers:
    return {tensor.name: as_float32(result) for tensor, result in zip(spec.outputs, results, strict=True)}


def named_gradients(loss: Any, gradients: Mapping[str, Any]) -> Answers:
    return {LOSS: as_float32(loss), **{GRADIENT + name: as_float32(each) for name, each in gradients.items()}}


def answers_of_tensors(work: Workload, canonical: Canonical, result: Any) -> Answers:
    """Convert the result of a framework whose tensors convert to NumPy with ``numpy()``.

    ``canonical`` converts a gradient to the layout of the spec, given the name of its weight.
    """
    if MODES[work.mode].gives_outputs:
        return named_outputs(work.spec, [each.numpy() for each in result])
    loss, gradients = result
    by_name = zip(trained_names(work.spec), gradients, strict=True)
    return named_gradients(loss.numpy(), {name: canonical(name, each.numpy()) for name, each in by_name})


def weights_of_tensors(work: Workload, canonical: Canonical, held: Mapping[str, Any]) -> Answers:
    return {weight.name: as_float32(canonical(weight.name, held[weight.name].numpy())) for weight in work.spec.weights}


def trained_names(spec: Spec) -> list[str]:
    return [weight.name for weight in spec.weights if weight.trained]


def of_every_weight(work: Workload, kind: str, state: Arrays) -> Arrays:
    """Complete one kind of arrays of a training state to all weights.

    The optimizer keeps nothing for those that are not trained: theirs stay as they were given.
    """
    return {name: state.get(kind + name, array) for name, array in work.weights.items()}


def batch_of(work: Workload) -> Arrays:
    """Return the inputs; in mode "train" with their labels."""
    if not MODES[work.mode].batches_have_labels or work.labels is None:
        return work.inputs
    return {**work.inputs, LABELS: work.labels}
