"""The perceptron's gradients by hand, in NumPy, so that what judges gradients is judged without a framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.elementary import gelu, layer_norm, linear, softmax
from fairlap.bench_models.mlp.spec import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from scipy.special import ndtr  # type: ignore[import-untyped,unused-ignore]

Array = npt.NDArray[Any]


def mlp_gradients(work: Workload) -> dict[str, Array]:
    assert work.labels is not None
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    image = work.inputs["image"].astype(np.float64)
    first = linear(image, weights, "first")
    activated = gelu(first)
    normed = layer_norm(activated, weights, "norm", EPSILON)
    second = linear(normed, weights, "second")
    activated_again = gelu(second)
    shares = softmax(linear(activated_again, weights, "third"))

    gradients: dict[str, Array] = {}
    back = (shares - np.eye(shares.shape[1])[work.labels]) / len(image)
    back = _through_linear(gradients, weights, "third", activated_again, back) * _gelu_slope(second)
    back = _through_linear(gradients, weights, "second", normed, back)
    back = _through_norm(gradients, weights, "norm", activated, back) * _gelu_slope(first)
    _through_linear(gradients, weights, "first", image, back)
    return gradients


def _through_linear(gradients: dict[str, Array], weights: Arrays, name: str, inputs: Array, back: Array) -> Array:
    gradients[f"{name}.weight"] = back.T @ inputs
    gradients[f"{name}.bias"] = back.sum(axis=0)
    before: Array = back @ weights[f"{name}.weight"]
    return before


def _through_norm(gradients: dict[str, Array], weights: Arrays, name: str, inputs: Array, back: Array) -> Array:
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
    standard = centred / scale
    gradients[f"{name}.weight"] = (back * standard).sum(axis=0)
    gradients[f"{name}.bias"] = back.sum(axis=0)
    inner = back * weights[f"{name}.weight"]
    along = standard * (inner * standard).mean(axis=-1, keepdims=True)
    before: Array = (inner - inner.mean(axis=-1, keepdims=True) - along) / scale
    return before


def _gelu_slope(inputs: Array) -> Array:
    slope: Array = ndtr(inputs) + inputs * np.exp(-(inputs**2) / 2) / np.sqrt(2 * np.pi)
    return slope
