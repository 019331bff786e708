"""The perceptron as a pure function; matrices are (in, out)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array.T) for name, array in weights.items()}


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(array).T for name, array in params.items()}


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    def linear(name: str, hidden: Any) -> Any:
        return hidden @ params[f"{name}.weight"] + params[f"{name}.bias"]

    hidden = jax.nn.relu(linear("first", inputs["features"]))
    return (linear("third", jax.nn.relu(linear("second", hidden))),)
