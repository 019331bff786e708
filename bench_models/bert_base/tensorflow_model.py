"""BERT-base as a TensorFlow module."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES, TABLE_NAMES
from fairlap.models.arrays import Arrays


def variables(weights: Arrays, dtype: Any, tables: Collection[str]) -> dict[str, Any]:
    """Tables of embeddings keep their rows; other matrices are turned."""
    return {
        name: tf.Variable(tf.cast(array if name in tables else np.ascontiguousarray(array.T), dtype))
        for name, array in weights.items()
    }


def linear(weights: dict[str, Any], name: str, hidden: Any) -> Any:
    return tf.nn.bias_add(tf.linalg.matmul(hidden, weights[f"{name}.weight"]), weights[f"{name}.bias"])


def layer_norm(weights: dict[str, Any], name: str, hidden: Any, epsilon: float) -> Any:
    """In float32 whatever goes in, as Keras does it."""
    scale, shift = (tf.cast(weights[f"{name}.{part}"], tf.float32) for part in ("weight", "bias"))
    wide = tf.cast(hidden, tf.float32)
    mean, variance = tf.nn.moments(wide, axes=[-1], keepdims=True)
    return tf.cast(tf.nn.batch_normalization(wide, mean, variance, shift, scale, epsilon), hidden.dtype)


def attention(query: Any, key: Any, value: Any, heads: int, unseen: Any) -> Any:
    """All are (batch, tokens, hidden). ``unseen`` is added to the scores: 0, or very low to hide a key."""
    query, key, value = (_by_head(each, heads) for each in (query, key, value))
    scores = tf.linalg.matmul(query, key, transpose_b=True) * query.shape[-1] ** -0.5
    attended = tf.linalg.matmul(tf.nn.softmax(scores + unseen, axis=-1), value)
    batch, _, tokens, _ = attended.shape
    return tf.reshape(tf.transpose(attended, (0, 2, 1, 3)), (batch, tokens, -1))


def _by_head(hidden: Any, heads: int) -> Any:
    batch, tokens, features = hidden.shape
    return tf.transpose(tf.reshape(hidden, (batch, tokens, heads, features // heads)), (0, 2, 1, 3))


class BertBase(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = variables(weights, dtype, TABLE_NAMES)

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        hidden = self._embed(inputs)
        seen = tf.cast(inputs["attention_mask"][:, tf.newaxis, tf.newaxis, :], hidden.dtype)
        unseen = (1.0 - seen) * hidden.dtype.min
        for name in LAYER_NAMES:
            hidden = self._apply_layer(name, hidden, unseen)
        return tf.tanh(linear(self.variables_by_name, "pooler.dense", hidden[:, 0])), hidden

    def _embed(self, inputs: dict[str, Any]) -> Any:
        weights = self.variables_by_name
        words = tf.gather(weights["embeddings.word_embeddings.weight"], inputs["input_ids"])
        places = weights["embeddings.position_embeddings.weight"][: words.shape[1]]
        types = tf.gather(weights["embeddings.token_type_embeddings.weight"], inputs["token_type_ids"])
        return layer_norm(weights, "embeddings.LayerNorm", words + places + types, EPSILON)

    def _apply_layer(self, name: str, hidden: Any, unseen: Any) -> Any:
        weights, own = self.variables_by_name, f"{name}.attention.self"
        query, key, value = (linear(weights, f"{own}.{each}", hidden) for each in ("query", "key", "value"))
        attended = attention(query, key, value, HEADS, unseen)
        hidden = self._added(f"{name}.attention.output", attended, hidden)
        activated = tf.nn.gelu(linear(weights, f"{name}.intermediate.dense", hidden), approximate=False)
        return self._added(f"{name}.output", activated, hidden)

    def _added(self, name: str, result: Any, hidden: Any) -> Any:
        weights = self.variables_by_name
        return layer_norm(weights, f"{name}.LayerNorm", hidden + linear(weights, f"{name}.dense", result), EPSILON)


def build(weights: Arrays, dtype: Any) -> BertBase:
    return BertBase(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array if name in TABLE_NAMES else array.T
