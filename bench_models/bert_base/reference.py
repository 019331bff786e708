"""BERT-base in NumPy. Sizes are those of the weights, so that a small one can be looked at too."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES
from fairlap.bench_models.elementary import gelu, layer_norm, linear
from fairlap.bench_models.transformer.numpy_layers import attention
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


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
