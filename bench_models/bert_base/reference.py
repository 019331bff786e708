"""BERT-base in NumPy. Sizes are those of the weights, so that a small one can be looked at too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES
from fairlap.bench_models.elementary import gelu, layer_norm, linear, softmax
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def attention(query: Array, key: Array, value: Array, heads: int, allowed: Array) -> Array:
    """All are (batch, tokens, hidden). ``allowed`` says which query sees which key: (..., queries, keys)."""
    query, key, value = (_by_head(each, heads) for each in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])  # a NumPy scalar would make float64 of float32
    attended = softmax(np.where(allowed, scores, -np.inf)) @ value
    batch, _, tokens, _ = attended.shape
    return attended.swapaxes(1, 2).reshape(batch, tokens, -1)


def _by_head(hidden: Array, heads: int) -> Array:
    batch, tokens, features = hidden.shape
    return hidden.reshape(batch, tokens, heads, features // heads).swapaxes(1, 2)


def forward(weights: Arrays, inputs: Arrays) -> dict[str, Array]:
    allowed = inputs["attention_mask"][:, None, None, :] == 1
    hidden = embed(weights, inputs)
    for name in LAYER_NAMES:
        hidden = apply_layer(weights, name, hidden, allowed)
    return {"pooled": np.tanh(linear(hidden[:, 0], weights, "pooler.dense")), "last_hidden_state": hidden}


def embed(weights: Arrays, inputs: Arrays) -> Array:
    words = weights["embeddings.word_embeddings.weight"][inputs["input_ids"]]
    places = weights["embeddings.position_embeddings.weight"][: words.shape[1]]
    types = weights["embeddings.token_type_embeddings.weight"][inputs["token_type_ids"]]
    return layer_norm(words + places + types, weights, "embeddings.LayerNorm", EPSILON)


def apply_layer(weights: Arrays, name: str, hidden: Array, allowed: Array) -> Array:
    query, key, value = (linear(hidden, weights, f"{name}.attention.self.{each}") for each in ("query", "key", "value"))
    attended = attention(query, key, value, HEADS, allowed)
    hidden = _added(weights, f"{name}.attention.output", attended, hidden)
    return _added(weights, f"{name}.output", gelu(linear(hidden, weights, f"{name}.intermediate.dense")), hidden)


def _added(weights: Arrays, name: str, result: Array, hidden: Array) -> Array:
    return layer_norm(hidden + linear(result, weights, f"{name}.dense"), weights, f"{name}.LayerNorm", EPSILON)
