"""Layer normalisation as a pure function."""

from __future__ import annotations

from typing import Any

import jax
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return dict(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return dict(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    standard = jax.nn.standardize(inputs["hidden"], epsilon=EPSILON)
    return (standard * params["norm.weight"] + params["norm.bias"],)
