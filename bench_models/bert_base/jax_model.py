"""BERT-base as a pure function."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES, TABLE_NAMES
from fairlap.bench_models.transformer.jax_layers import attention, layer_norm, linear, to_jax_layout, to_spec_layout
from fairlap.models.arrays import Arrays


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
