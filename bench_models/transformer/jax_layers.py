"""The layers of transformers in JAX; matrices are (in, out), the layout that XLA prefers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.models.arrays import Arrays


def linear(params: dict[str, Any], name: str, hidden: Any) -> Any:
    return hidden @ params[f"{name}.weight"] + params[f"{name}.bias"]


def layer_norm(params: dict[str, Any], name: str, hidden: Any, epsilon: float) -> Any:
    """In float32 whatever goes in, as in Flax: the variance is a small difference of large numbers."""
    standard = jax.nn.standardize(hidden.astype(jnp.float32), epsilon=epsilon)
    return (standard * params[f"{name}.weight"] + params[f"{name}.bias"]).astype(hidden.dtype)


def attention(query: Any, key: Any, value: Any, heads: int, allowed: Any) -> Any:
    """All are (batch, tokens, hidden). ``allowed`` says which query sees which key: (..., queries, keys).

    Products of stacks of matrices, and a softmax in float32, for the reasons that the model ``attention`` gives.
    """
    query, key, value = (_by_head(each, heads) for each in (query, key, value))
    scores = jnp.matmul(query, key.swapaxes(-1, -2), preferred_element_type=jnp.float32) * query.shape[-1] ** -0.5
    shares = jax.nn.softmax(jnp.where(allowed, scores, jnp.finfo(scores.dtype).min), axis=-1)
    attended = jnp.matmul(shares.astype(value.dtype), value).swapaxes(1, 2)
    return attended.reshape(*attended.shape[:2], -1)


def to_jax_layout(weights: Arrays, tables: Collection[str]) -> dict[str, Any]:
    """Tables of embeddings keep their rows; other matrices are turned."""
    return {
        name: array if name in tables else np.ascontiguousarray(array.T)  # a bias has nothing to turn
        for name, array in weights.items()
    }


def to_spec_layout(params: dict[str, Any], tables: Collection[str]) -> dict[str, Any]:
    return {name: array if name in tables else array.T for name, array in params.items()}


def _by_head(hidden: Any, heads: int) -> Any:
    batch, tokens, features = hidden.shape
    return hidden.reshape(batch, tokens, heads, features // heads).swapaxes(1, 2)
