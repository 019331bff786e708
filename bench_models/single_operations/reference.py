"""The operations in NumPy, in the precision of the inputs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.conv2d.spec import IMAGE, INWARD, KERNEL, OUTWARD, PADDING
from fairlap.bench_models.elementary import layer_norm, softmax
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def attention(weights: Arrays, inputs: Arrays) -> Array:
    scores = inputs["query"] @ weights["key"].transpose(0, 2, 1) * SCALE
    attended: Array = softmax(scores) @ weights["value"]
    return attended


def conv2d(weights: Arrays, inputs: Arrays) -> Array:
    """One matrix product over the pixels that each place sees."""
    margin = (PADDING, PADDING)
    padded = np.pad(inputs["image"], ((0, 0), (0, 0), margin, margin))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
    columns = seen.transpose(0, 1, 4, 5, 2, 3).reshape(len(padded), INWARD * KERNEL**2, IMAGE**2)
    convolved: Array = weights["kernel"].reshape(OUTWARD, -1) @ columns
    return convolved.reshape(-1, OUTWARD, IMAGE, IMAGE)


def triad(_weights: Arrays, inputs: Arrays) -> Array:
    scaled: Array = inputs["right"].dtype.type(TRIAD_SCALE) * inputs["right"]
    return inputs["left"] + scaled


_OPERATIONS = {
    "attention": attention,
    "conv2d": conv2d,
    "empty": lambda weights, inputs: inputs["some"] + 1,
    "gemm": lambda weights, inputs: inputs["left"] @ weights["right"],
    "layernorm": lambda weights, inputs: layer_norm(inputs["hidden"], weights, "norm", EPSILON),
    "softmax": lambda weights, inputs: softmax(inputs["scores"]),
    "triad": triad,
}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._compute = _OPERATIONS[spec.SPEC.name]
        self._output = spec.SPEC.outputs[0].name

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        return {self._output: self._compute(weights, inputs)}
