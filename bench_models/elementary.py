"""Operations that several float64 references use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def linear(inputs: Array, weights: Arrays, name: str) -> Array:
    result: Array = inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def layer_norm(inputs: Array, weights: Arrays, name: str, epsilon: float) -> Array:
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + epsilon)
    result: Array = centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return result


def gelu(inputs: Array) -> Array:
    """Compute the exact definition, with the error function."""
    from scipy.special import erf  # type: ignore[import-untyped,unused-ignore]

    result: Array = 0.5 * inputs * (1.0 + erf(inputs / math.sqrt(2.0)))
    return result


def softmax(inputs: Array) -> Array:
    exponentials = np.exp(inputs - inputs.max(axis=-1, keepdims=True))
    result: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return result
