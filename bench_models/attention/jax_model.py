"""Attention as a pure function. Heads are a batch axis of both products, which saves turning anything.

Scores and their softmax stay in float32 whatever goes in, as in JAX's own attention.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from fairlap.workloads.workload import Arrays

from bench_models.attention.spec import SCALE


def params(weights: Arrays) -> dict[str, Any]:
    return dict(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return dict(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    query, key, value = inputs["query"], params["key"], params["value"]
    scores = jnp.einsum("bhqs,hks->bhqk", query, key, preferred_element_type=jnp.float32) * SCALE
    shares = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    return (jnp.einsum("bhqk,hks->bhqs", shares, value),)
