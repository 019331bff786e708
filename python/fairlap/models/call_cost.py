"""What one call has to do at least: its operations, and the bytes that must move."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from fairlap.models.modes import MODES
from fairlap.models.spec import Dtype, Spec, Tensor
from fairlap.request.fields.training import AdamW, Sgd
from fairlap.request.work import Precision, Work

SETS_OF_INPUTS = 2
"""That take turns while calls are timed, so that a call does not find its inputs where the last one left them."""

_ELEMENT_BYTES: Mapping[Dtype, int] = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_WEIGHT_BYTES: Mapping[Precision, int] = {"fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}
_INPUT_BYTES: Mapping[Precision, int] = {"fp16": 2, "bf16": 2}
_FLOAT_BYTES = 4


class CallCost(msgspec.Struct, frozen=True):
    """Stored with each process, since a model may change, and a user's own need not be there when a run is read."""

    moved_bytes: float
    working_set_bytes: float  # of calls whose inputs take turns
    operators: int  # at least
    operations: float | None = None
    counted: str = ""  # how, or why not
    exchanged_bytes: float | None = None  # of the gradients, where ranks share a step of training


def bytes_of_weights(spec: Spec, precision: Precision) -> int:
    """Count what a contestant holds at least: all weights, in its precision."""
    return _held(spec) * _WEIGHT_BYTES.get(precision, _FLOAT_BYTES)


def _held(spec: Spec) -> int:
    return sum(math.prod(weight.shape) for weight in spec.weights)


def call_cost(spec: Spec, work: Work) -> CallCost | None:
    """None where it is unknown what a call computes."""
    if not spec.computes or (work.source is not None and (work.source.of_callables or work.source.of_data)):
        return None
    precision = work.precision
    held = _held(spec)
    read = held if spec.read_weights is None else spec.read_weights
    weight_bytes = _WEIGHT_BYTES.get(precision, _FLOAT_BYTES)
    inputs = _bytes_of(spec.inputs, work)
    operations = _operations_of_inference(spec, work.batch)
    written = _written_bytes(spec, work)
    counted = "" if operations is not None else f"the operations of {spec.name} are not counted"
    if spec.uncounted:
        counted = f"not all operations of {spec.name} are counted: {', '.join(spec.uncounted)}"
    elif operations is not None and MODES[work.mode].inferences > 1:
        counted = f"{MODES[work.mode].inferences} times those of an inference"
    return CallCost(
        moved_bytes=float(read * weight_bytes + inputs + written),
        # Other inputs look up other rows of a table.
        working_set_bytes=float(min(held, SETS_OF_INPUTS * read) * weight_bytes + SETS_OF_INPUTS * inputs + written),
        # Most operators have a weight; one without any has no more than a few.
        operators=max(1, len(spec.weights)),
        operations=None if operations is None else operations * MODES[work.mode].inferences,
        counted=counted,
        exchanged_bytes=_exchanged_bytes(spec, work),
    )


def _operations_of_inference(spec: Spec, batch: int) -> float | None:
    """None also for a user's model in which none, or not all, are counted: it may compute all the same."""
    if spec.uncounted:
        return None
    if spec.operations_per_item is not None:
        return spec.operations_per_item * batch
    return 2e9 * spec.gmacs_per_item * batch if spec.gmacs_per_item else None


def _bytes_of(tensors: tuple[Tensor, ...], work: Work) -> int:
    total = 0
    for tensor in tensors:
        size = _ELEMENT_BYTES[tensor.dtype]
        if tensor.dtype == "float32":
            size = _INPUT_BYTES.get(work.precision, size)
        total += math.prod(tensor.sized(work.batch)) * size
    return total


def _written_bytes(spec: Spec, work: Work) -> int:
    """Count the bytes that a call writes.

    They are the outputs; or the gradients; or the weights after the step, and what the optimizer keeps read and
    written.
    """
    if MODES[work.mode].gives_outputs:
        return _bytes_of(spec.outputs, work)
    trained = spec.trained_parameters() * _WEIGHT_BYTES.get(work.precision, 4)
    if work.training is None:
        return trained
    return trained * (1 + 2 * _kept_by(work.training.optimizer))


def _exchanged_bytes(spec: Spec, work: Work) -> float | None:
    if work.training is None or work.scale is None or work.scale.ranks < 2:
        return None
    return float(spec.trained_parameters() * _WEIGHT_BYTES.get(work.precision, 4))


def _kept_by(optimizer: Sgd | AdamW) -> int:
    """Arrays of a weight's size."""
    if isinstance(optimizer, AdamW):
        return 2
    return 1 if optimizer.momentum else 0
