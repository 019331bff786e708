"""The perceptron in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.elementary import gelu, layer_norm, linear
from fairlap.bench_models.mlp.spec import EPSILON
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    hidden = gelu(linear(inputs["image"], weights, "first"))
    hidden = layer_norm(hidden, weights, "norm", EPSILON)
    hidden = gelu(linear(hidden, weights, "second"))
    return {"logits": linear(hidden, weights, "third")}
