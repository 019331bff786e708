"""BERT-base as a pure function."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES, TABLE_NAMES
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


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights, TABLE_NAMES)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params, TABLE_NAMES)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, Any]:
    allowed = inputs["attention_mask"][:, None, None, :] == 1
    hidden = _embed(params, inputs)
    for name in LAYER_NAMES:
        hidden = _apply_layer(params, name, hidden, allowed)
    return jnp.tanh(linear(params, "pooler.dense", hidden[:, 0])), hidden


def _embed(params: dict[str, Any], inputs: dict[str, Any]) -> Any:
    words = jnp.take(params["embeddings.word_embeddings.weight"], inputs["input_ids"], axis=0)
    places = params["embeddings.position_embeddings.weight"][: words.shape[1]]
    types = jnp.take(params["embeddings.token_type_embeddings.weight"], inputs["token_type_ids"], axis=0)
    return layer_norm(params, "embeddings.LayerNorm", words + places + types, EPSILON)


def _apply_layer(params: dict[str, Any], name: str, hidden: Any, allowed: Any) -> Any:
    query, key, value = (linear(params, f"{name}.attention.self.{each}", hidden) for each in ("query", "key", "value"))
    attended = attention(query, key, value, HEADS, allowed)
    hidden = _added(params, f"{name}.attention.output", attended, hidden)
    activated = jax.nn.gelu(linear(params, f"{name}.intermediate.dense", hidden), approximate=False)
    return _added(params, f"{name}.output", activated, hidden)


def _added(params: dict[str, Any], name: str, result: Any, hidden: Any) -> Any:
    return layer_norm(params, f"{name}.LayerNorm", hidden + linear(params, f"{name}.dense", result), EPSILON)
