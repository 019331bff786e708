"""The layers of transformers in TensorFlow; matrices are (in, out)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import tensorflow as tf
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
